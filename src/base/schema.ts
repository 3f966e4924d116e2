import { type Static, type TObject, type TProperties, type TSchema, type TUnsafe, Type } from '@sinclair/typebox'

/*
 * Builds JSON Schemas from which the TypeScript types of answers and the components of the API document are both taken. Nothing is
 * checked by them at run time. They load TypeBox: who needs types alone imports them with `import type`.
 */

/** The type of what fits a schema. */
export type TypeOf<Schema extends TSchema> = Static<Schema>

/** The JSON Schema of a part as the API document has it in place of the whole one. */
export const OUTLINE = Symbol('outline')
/** The members that the API document promises, where the answers of this version have more. */
export const PROMISED = Symbol('promised')

/** What is said of an object beside its members. */
interface ObjectOptions {
  readonly description?: string
  /** The name of the component that the API document has it under. */
  readonly $id?: string
  readonly [PROMISED]?: readonly string[]
}

/** Schemas of single values. */
export const TEXT = Type.String()
export const DATE = Type.String({ format: 'date-time' })
export const FLAG = Type.Boolean()
export const NUMBER = Type.Number()
export const INTEGER = Type.Integer()
export const COUNT = Type.Integer({ minimum: 0 })
export const MAYBE_TEXT = maybe(TEXT)
export const MAYBE_DATE = maybe(DATE)
export const MAYBE_NUMBER = maybe(NUMBER)
export const MAYBE_INTEGER = maybe(INTEGER)
export const TEXTS = list(TEXT)

/** Creates the schema of an object with these members alone. */
export function object<Members extends TProperties>(
  members: Members,
  options: ObjectOptions = {},
): TUnsafe<Readonly<Static<TObject<Members>>>> {
  return Type.Unsafe(Type.Object(members, options))
}

/** Makes a member of an object one that may be left out. */
export const optional = <Schema extends TSchema>(schema: Schema) => Type.Optional(schema)

/** Adds null to what fits a schema. */
export function maybe<Schema extends TSchema>(schema: Schema): TUnsafe<Static<Schema> | null> {
  return Type.Unsafe({ ...schema, type: [schema['type'], 'null'] })
}

/** Creates the schema of a list. */
export function list<Item extends TSchema>(items: Item): TUnsafe<readonly Static<Item>[]> {
  return Type.Unsafe({ type: 'array', items })
}

/** Creates the schema of a text that is one of these. */
export function oneOf<const Value extends string>(values: readonly Value[]): TUnsafe<Value> {
  return Type.Unsafe({ enum: [...values] })
}

/** Creates the schema of an object with values by names that are not fixed; `properties`: those of them that are described. */
export function byName<Value extends TSchema>(
  value: Value,
  about: { readonly description?: string; readonly properties?: TProperties } = {},
): TUnsafe<Record<string, Static<Value>>> {
  return Type.Unsafe({ type: 'object', ...about, additionalProperties: value })
}

/** Gives a JSON Schema a type that it cannot express. */
export function typed<Value>(schema: object): TUnsafe<Value> {
  return Type.Unsafe(schema)
}

/** Adds what the API document says of a part. */
export function described<Schema extends TSchema>(schema: Schema, description: string): Schema {
  return { ...schema, description }
}

/** Makes the API document say only of which kind a part is, so that the document stays small. */
export function brief<Schema extends TSchema>(schema: Schema): Schema {
  const { type = 'string', description } = schema
  return { ...schema, [OUTLINE]: { type: type as unknown, ...(description !== undefined && { description }) } }
}
