/**
 * The names under which project code imports the SDK. All lead to the modules of this very package, so that there is one of each class.
 */

/** URLs of modules by the names that project code uses. */
export function aliases(): ReadonlyMap<string, string> {
  const here = (path: string): string => new URL(`../../${path}`, import.meta.url).href;
  return new Map([
    ["@runfleet/sdk", here("index.js")],
    ["@cogover/sdk", here("index.js")],
    ["@nocobase/ai", here("compat/nocobase-ai.js")],
    ["@nocobase/actions", here("compat/nocobase-actions.js")],
  ]);
}
