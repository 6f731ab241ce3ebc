//! Whole-fleet journeys on real processes, and checks on the repository itself.

#![recursion_limit = "256"]
#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod agent_models;
mod agent_runs;
mod agent_tasks;
mod agent_tools;
mod agents;
mod chat;
mod chat_page;
mod contract;
mod credits;
mod delivery;
mod examples;
mod facts;
mod jobs;
mod journeys;
mod operations;
mod pages;
mod processes;
mod projects;
mod records;
mod starts;
mod tasks;
mod tidy;

mod mail;
mod node;
mod node_kinds;
mod quiet_hours;
mod turns;
