/** What the fleet is told about a version of a project. */
import type { PreparedTool } from "../tools/prepare.js";
import type { Project } from "./collect.js";

/** Payload of `projects.register`. */
export interface ProjectManifest {
  readonly version: string;
  readonly jobs: readonly object[];
  readonly scripts: readonly string[];
  readonly routes: readonly string[];
  readonly triggers: readonly object[];
  readonly actions: readonly object[];
  readonly tools: readonly object[];
}

/** The manifest of a version. Tools that a browser runs are not among those of a host. */
export function manifest(version: string, project: Project, tools: readonly PreparedTool[]): ProjectManifest {
  return {
    version,
    jobs: [...project.jobs.values()].map(({ config: { schedule, ...job } }) => ({
      ...job,
      ...(schedule === undefined ? {} : { schedule: { cron: schedule.cron, timeZone: schedule.timezone } }),
    })),
    scripts: [...project.scripts.keys()],
    routes: [...project.routes.keys()],
    triggers: [...project.triggers.values()].map(({ key, config }) => ({ key, timeoutMs: config.timeoutMs })),
    actions: [...project.actions.values()].map(({ key, config }) => ({ key, access: config.effect, timeoutMs: config.timeoutMs })),
    tools: tools.filter(({ execution }) => execution === "backend").map((tool) => ({
      name: tool.name,
      title: tool.introduction.title,
      description: tool.definition.description,
      schema: tool.parameters,
      permission: tool.defaultPermission,
      scope: tool.scope,
    })),
  };
}
