/** The types of the schema builder: what a schema describes, as TypeScript sees it. */

/** A JSON Schema as it travels. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** Something in a value that does not fit. Never holds the value. */
export interface SchemaProblem {
  /** JSON Pointer to the place; empty for the root. */
  readonly path: string;
  /** What is wrong there. */
  readonly message: string;
}

/** Whether a value fits. */
export type SchemaResult<T> =
  | { readonly ok: true; readonly value: T }
  | {
      readonly ok: false;
      /** At most 20 problems. */
      readonly problems: readonly SchemaProblem[];
      /** How many there are in all. */
      readonly errorCount: number;
    };

/** Describes a value. `Optional` tells whether a property with this schema may be left out. */
export interface Schema<T, Optional extends boolean = boolean> {
  /** Exists for types only. */
  readonly "~type"?: T;
  /** Whether a property with this schema may be left out. */
  readonly isOptional: Optional;
  /** The same, but a property with it may be left out. */
  optional(): Schema<T, true>;
  /** The same with a text for people and models: 1 to 2,000 characters. */
  describe(description: string): Schema<T, Optional>;
  /** The JSON Schema. */
  toJSON(): JsonSchema;
  /** The JSON Schema. */
  toJsonSchema(): JsonSchema;
  /** The value without its empty optional properties. Throws a `ValidationError` with `details.errors` when it does not fit. */
  parse(value: unknown): T;
  /** The same without throwing. */
  safeParse(value: unknown): SchemaResult<T>;
}

/** The properties of an object. */
export type ObjectShape = Readonly<Record<string, Schema<unknown>>>;

/** What a schema describes. */
export type InferSchema<S extends Schema<unknown>> = S extends Schema<infer T> ? T : never;

type OptionalNames<Shape extends ObjectShape> = {
  [Name in keyof Shape]: true extends Shape[Name]["isOptional"] ? Name : never;
}[keyof Shape];

type Flat<T> = { [Name in keyof T]: T[Name] };

/** What an object of these properties is. */
export type InferShape<Shape extends ObjectShape> = Flat<
  { readonly [Name in Exclude<keyof Shape, OptionalNames<Shape>>]: InferSchema<Shape[Name]> } & {
    readonly [Name in OptionalNames<Shape>]?: InferSchema<Shape[Name]>;
  }
>;

/** Describes an object with these properties and no others. */
export interface ObjectSchema<Shape extends ObjectShape = ObjectShape, Optional extends boolean = false>
  extends Schema<InferShape<Shape>, Optional> {
  /** The properties. */
  readonly shape: Shape;
  optional(): ObjectSchema<Shape, true>;
  describe(description: string): ObjectSchema<Shape, Optional>;
}

/** Bounds of a string, in characters. */
export interface StringOptions {
  readonly minLength?: number;
  /** 10,000 unless it is given. */
  readonly maxLength?: number;
}

/** Bounds of a number, both allowed. */
export interface NumberOptions {
  readonly minimum?: number;
  readonly maximum?: number;
}

/** Bounds of a list. */
export interface ArrayOptions {
  /** 1,000 unless it is given. */
  readonly maxItems?: number;
}
