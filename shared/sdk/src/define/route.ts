/** Routes: code that answers HTTP requests of a method and a path. */
import { ValidationError } from "../errors.js";
import { badField } from "../json.js";
import type { EffectiveWorkspaceObjects } from "../records.js";
import { CALL_NAME, CALL_NAME_PROBLEM, Config, handlerOf } from "./config.js";
import type { RequestMethod } from "./response.js";
import type { ScriptDefinition, ScriptHandler } from "./script.js";

/** What is said about a route. */
export interface RouteConfig {
  readonly method: RequestMethod;
  /** `/`, or parts like `/orders/:orderId`, at most 1,024 characters. */
  readonly path: string;
  /** Names the route for callers; method and path unless it is given: `GET/orders/orderId`. */
  readonly name?: string;
}

/** A route of a project. */
export interface RouteDefinition {
  readonly kind: "route";
  readonly name: string;
  readonly config: { readonly method: RequestMethod; readonly path: string };
  readonly handler: ScriptHandler<never>;
}

/** The routes of a router. */
export interface RouterDefinition {
  readonly kind: "router";
  readonly routes: readonly RouteDefinition[];
}

/** What a file exports as default to be called: a script, or the routes of a router. */
export type SandboxHandler = ScriptDefinition | RouterDefinition;

const METHODS: readonly RequestMethod[] = ["GET", "POST", "PUT", "PATCH", "DELETE"];
const PATH_CHARS_MAX = 1_024;
const PART = /^(?:[A-Za-z0-9][A-Za-z0-9_-]{0,99}|:[A-Za-z][A-Za-z0-9_]{0,63})$/;
const ROUTES_MAX = 200;

/**
 * Defines a route. Export it as default, or in the list `routes`.
 *
 * @throws ValidationError when an option is not known or does not fit.
 */
export function defineRoute<Input = unknown, Output = unknown, Schema extends object = EffectiveWorkspaceObjects>(
  config: RouteConfig,
  handler: ScriptHandler<Input, Output, Schema>,
): RouteDefinition {
  const options = new Config("route", config, ["method", "path", "name"]);
  const method = options.word("method", METHODS);
  const path = options.get("path");
  const params = paramsOf(path);
  if (params === undefined) throw options.wrong("path", "must be `/`, or parts of letters, digits, `_` and `-` like `/orders/:orderId`");
  if (new Set(params).size !== params.length) throw options.wrong("path", "must name each part once");
  const own = options.get("name");
  const name = own === undefined ? nameOf(method, path as string) : options.name("name", CALL_NAME, CALL_NAME_PROBLEM);
  if (!CALL_NAME.test(name)) throw options.wrong("name", "is needed: method and path are too long to be one");
  const work = handlerOf("route", handler) as unknown as ScriptHandler<never>;
  return Object.freeze({ kind: "route", name, config: Object.freeze({ method, path: path as string }), handler: work });
}

/** Named parts of a path; undefined when it is none. */
function paramsOf(path: unknown): string[] | undefined {
  if (typeof path !== "string" || path.length > PATH_CHARS_MAX || !path.startsWith("/")) return undefined;
  if (path === "/") return [];
  const parts = path.slice(1).split("/");
  return parts.every((part) => PART.test(part)) ? parts.filter((part) => part.startsWith(":")) : undefined;
}

function nameOf(method: RequestMethod, path: string): string {
  return path === "/" ? method : `${method}${path.replaceAll(":", "")}`;
}

/** Collects routes of one file. */
export interface ScriptRouter<Schema extends object = EffectiveWorkspaceObjects> {
  /** Adds a route. */
  addRoute<Input = unknown, Output = unknown>(
    method: RequestMethod, path: string, handler: ScriptHandler<Input, Output, Schema>,
  ): ScriptRouter<Schema>;
  get<Input = unknown, Output = unknown>(path: string, handler: ScriptHandler<Input, Output, Schema>): ScriptRouter<Schema>;
  post<Input = unknown, Output = unknown>(path: string, handler: ScriptHandler<Input, Output, Schema>): ScriptRouter<Schema>;
  put<Input = unknown, Output = unknown>(path: string, handler: ScriptHandler<Input, Output, Schema>): ScriptRouter<Schema>;
  patch<Input = unknown, Output = unknown>(path: string, handler: ScriptHandler<Input, Output, Schema>): ScriptRouter<Schema>;
  delete<Input = unknown, Output = unknown>(path: string, handler: ScriptHandler<Input, Output, Schema>): ScriptRouter<Schema>;
  /** The routes so far. Export this as default. */
  toHandler(): RouterDefinition;
}

/** Makes a router without routes. */
export function createRouter<Schema extends object = EffectiveWorkspaceObjects>(): ScriptRouter<Schema> {
  const routes: RouteDefinition[] = [];
  const add = (method: RequestMethod, path: string, handler: ScriptHandler<never, unknown, Schema>): ScriptRouter<Schema> => {
    const route = defineRoute<never, unknown, Schema>({ method, path }, handler);
    const pattern = (path: string): string => path.replaceAll(/:[^/]+/g, ":");
    const taken = routes.some(({ config }) => config.method === method && pattern(config.path) === pattern(path));
    if (taken) throw badField("route.path", "is taken by another route of this router");
    if (routes.length >= ROUTES_MAX) throw new ValidationError(`A router has at most ${ROUTES_MAX} routes.`);
    routes.push(route);
    return router;
  };
  const router: ScriptRouter<Schema> = Object.freeze({
    addRoute: (method: RequestMethod, path: string, handler: ScriptHandler<never, unknown, Schema>) => add(method, path, handler),
    get: (path: string, handler: ScriptHandler<never, unknown, Schema>) => add("GET", path, handler),
    post: (path: string, handler: ScriptHandler<never, unknown, Schema>) => add("POST", path, handler),
    put: (path: string, handler: ScriptHandler<never, unknown, Schema>) => add("PUT", path, handler),
    patch: (path: string, handler: ScriptHandler<never, unknown, Schema>) => add("PATCH", path, handler),
    delete: (path: string, handler: ScriptHandler<never, unknown, Schema>) => add("DELETE", path, handler),
    toHandler: () => Object.freeze({ kind: "router" as const, routes: Object.freeze([...routes]) }),
  });
  return router;
}
