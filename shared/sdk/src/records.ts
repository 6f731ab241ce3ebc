/** Records of a workspace as project code sees them: ids, fields and the types that a project declares for its objects. */

/** The id of a record. A plain text at run time; payloads of jobs bring it back as one. */
export type CogoverRecordId = string & { readonly __cogoverRecordIdBrand: unique symbol };

/** A link from one record to another. */
export interface RecordReference<ObjectSlug extends string = string> {
  /** The record that is linked. */
  readonly id: CogoverRecordId;
  /** Its name, empty when it was not asked for. */
  readonly name: string;
  /** What kind of record it is. */
  readonly objectSlug?: ObjectSlug;
}

/** A web address with a text to show. */
export interface UrlValue {
  readonly url: string;
  readonly alias?: string;
}

/** A file of a record. */
export interface FileValue {
  readonly id: string;
  readonly name: string;
  readonly size?: number;
  readonly contentType?: string;
  readonly url?: string;
}

/**
 * The objects of the workspace, by slug, each with the types of its fields. A project says what it has in a `workspace.d.ts`:
 *
 * ```ts
 * declare module "@runfleet/sdk" {
 *   interface WorkspaceObjects {
 *     lead: { name: string; score: number | null };
 *   }
 * }
 * export {};
 * ```
 */
export interface WorkspaceObjects {}

/** Objects of which nothing is known: any slug, fields of any kind. */
export type UnknownObjects = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** What the project has declared; anything when it has declared nothing. */
export type EffectiveWorkspaceObjects = keyof WorkspaceObjects extends never ? UnknownObjects : WorkspaceObjects;

type Slug<Schema extends object> = keyof Schema & string;
type FieldName<Fields> = keyof Fields & string;

/** A record that was read. */
export interface CogoverRecord<Fields = Readonly<Record<string, unknown>>> {
  /** Its id. */
  readonly id: CogoverRecordId;
  /** Its fields. */
  readonly fields: Readonly<Fields>;
}

/** Values that a field takes when it is written: a link takes an id as well. */
export type WritableValue<Value> = Value extends RecordReference<string> ? Value | string
  : Value extends readonly (infer Item)[] ? readonly WritableValue<Item>[]
  : Value;

/** Fields of a record that is to be changed; null clears a field. */
export type UpdateFields<Fields> = { readonly [Name in keyof Fields]?: WritableValue<Fields[Name]> | null };

/** Fields of a record that is to be made. */
export type CreateFields<Fields> = UpdateFields<Fields>;

/** How two values are compared. */
export type FilterOperator =
  | "=" | "!=" | ">" | ">=" | "<" | "<="
  | "like" | "not like" | "startsWith" | "endsWith"
  | "in" | "not in" | "is null" | "not null" | "between";

/** One comparison. */
export interface FilterCondition {
  readonly kind: "condition";
  readonly field: string;
  readonly operator: FilterOperator;
  readonly value?: unknown;
}

/** Comparisons that are joined. */
export interface FilterGroup {
  readonly kind: "group";
  readonly operator: "and" | "or";
  readonly expressions: readonly FilterExpression[];
}

/** What records have to fulfil. */
export type FilterExpression = FilterCondition | FilterGroup;

/** What of a record is read. */
export interface GetRecordOptions<Fields = Readonly<Record<string, unknown>>> {
  /** Names of fields, or `"*"` for all; all unless it is given. */
  readonly fields?: readonly FieldName<Fields>[] | "*";
}

/** Which records are read. */
export interface QueryOptions<Fields = Readonly<Record<string, unknown>>> extends GetRecordOptions<Fields> {
  /** At most 20 records by id. */
  readonly ids?: readonly string[];
  /** Words to look for. */
  readonly search?: string;
  /** Fields and the values that they equal: at most 20. */
  readonly filter?: { readonly [Name in FieldName<Fields>]?: WritableValue<Fields[Name]> | null };
  /** What they fulfil: equality, joined by `and`. Sources of records know nothing else. */
  readonly where?: FilterExpression;
  /** At most how many: 1 to 50; 10 unless it is given. */
  readonly limit?: number;
}

/** Records that were found. */
export interface RecordPage<Fields = Readonly<Record<string, unknown>>> {
  readonly items: readonly CogoverRecord<Fields>[];
}

/** Records that were asked for by their ids. */
export interface GetManyResult<Fields = Readonly<Record<string, unknown>>> {
  /** Those that are there, in no order that could be relied on. */
  readonly records: readonly CogoverRecord<Fields>[];
  /** The ids of the others. */
  readonly missingIds: readonly CogoverRecordId[];
}

/** Reads and writes records of one object, with the rights of the execution's user. */
export interface RecordsApi<Fields = Readonly<Record<string, unknown>>> {
  /** One record, or null when there is none that the user may see. */
  get(id: string, options?: GetRecordOptions<Fields>): Promise<CogoverRecord<Fields> | null>;
  /** At most 200 records by id; 20 are asked for at a time. */
  getMany(ids: readonly string[], options?: GetRecordOptions<Fields>): Promise<GetManyResult<Fields>>;
  /** Records that fulfil a condition. */
  query(options?: QueryOptions<Fields>): Promise<RecordPage<Fields>>;
  /** The same as `query`. */
  list(options?: QueryOptions<Fields>): Promise<RecordPage<Fields>>;
  /** Makes a record. */
  create(fields: CreateFields<Fields>): Promise<CogoverRecordId>;
  /** Changes fields of a record. */
  update(id: string, fields: UpdateFields<Fields>): Promise<void>;
}

/** One value of a field that may hold several. */
type Single<Value> = NonNullable<Value> extends readonly (infer Item)[] ? NonNullable<Item> : NonNullable<Value>;

/** Makes comparisons of one field. Sources of records know `eq` and `in` of ids; a query refuses what its source does not know. */
export interface FieldReference<Value = unknown> {
  /** The field. */
  readonly slug: string;
  eq(value: NonNullable<Value>): FilterCondition;
  neq(value: NonNullable<Value>): FilterCondition;
  gt(value: NonNullable<Value>): FilterCondition;
  gte(value: NonNullable<Value>): FilterCondition;
  lt(value: NonNullable<Value>): FilterCondition;
  lte(value: NonNullable<Value>): FilterCondition;
  like(value: string): FilterCondition;
  notLike(value: string): FilterCondition;
  startsWith(value: string): FilterCondition;
  endsWith(value: string): FilterCondition;
  in(values: readonly Single<Value>[]): FilterCondition;
  notIn(values: readonly Single<Value>[]): FilterCondition;
  isNull(): FilterCondition;
  notNull(): FilterCondition;
  between(from: NonNullable<Value>, to: NonNullable<Value>): FilterCondition;
}

/** Fields that can be compared, by name; every record has an `id`. */
export type FieldReferences<Fields> = { readonly [Name in FieldName<Fields>]: FieldReference<Fields[Name]> } & {
  readonly id: FieldReference<string>;
};

/** One kind of record. */
export interface ObjectClient<Fields = Readonly<Record<string, unknown>>> {
  /** Its slug. */
  readonly slug: string;
  /** Its fields, for conditions. */
  readonly fields: FieldReferences<Fields>;
  /** Its records. */
  readonly records: RecordsApi<Fields>;
}

/** The records of the workspace. */
export interface DataApi<Schema extends object = EffectiveWorkspaceObjects> {
  /** One kind of record. */
  object<Name extends Slug<Schema>>(slug: Name): ObjectClient<Schema[Name]>;
  /**
   * The records as another person may see them. The fleet grants no other identity: every operation is refused with
   * `PermissionDeniedError`, `details.reason` `IDENTITY_NOT_GRANTED`.
   */
  asUser(personnelId: string): DataApi<Schema>;
  /** The records whatever a person may see. Refused like `asUser`. */
  asSystem(): DataApi<Schema>;
}
