//! Whole bundles: what is refused and how it is told, what is stored, and how bundles change what is stored.

#[cfg(test)]
mod admission;
#[cfg(test)]
mod agents;
#[cfg(test)]
mod approval;
#[cfg(test)]
mod bundle;
#[cfg(test)]
mod example;
#[cfg(test)]
mod merge;
#[cfg(test)]
mod refused;
#[cfg(test)]
mod registered;
#[cfg(test)]
mod rights;
#[cfg(test)]
mod sinks;
#[cfg(test)]
mod snapshot;
