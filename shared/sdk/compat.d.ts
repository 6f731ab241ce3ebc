// Types for code that was written for other packages. Name it in `types` of a project's tsconfig.json:
//   "types": ["@runfleet/sdk/compat"]
declare module "@cogover/sdk" {
  export * from "@runfleet/sdk";
}
declare module "@nocobase/ai" {
  export * from "@runfleet/sdk/compat/nocobase-ai";
}
declare module "@nocobase/actions" {
  export * from "@runfleet/sdk/compat/nocobase-actions";
}
