import { OUTLINE, PROMISED } from '../../../base/schema.ts'
import { isObject } from '../../../base/json/objects.ts'
import { ref } from '../components.ts'
import type { JsonSchema } from '../openapi.ts'

/** A schema, by its keywords and by what is noted for the API document. */
type Written = Readonly<Record<string | typeof OUTLINE | typeof PROMISED, unknown>>

/** The keywords in the order in which the API document has them. */
const ORDER = ['type', 'enum', 'const', 'format', 'minimum', 'description', 'required', 'properties', 'items']

/**
 * Returns a schema as a component of the API document: its outline where it is to be brief, a reference in place of a part that is
 * a component of its own, and what the document promises as required.
 */
export function published(schema: object): JsonSchema {
  const { [OUTLINE]: outline, [PROMISED]: promised, $id: _, ...keywords } = schema as Written
  if (outline !== undefined) return outline as JsonSchema
  const shown = {
    ...keywords,
    required: isEmpty(promised) ? undefined : (promised ?? keywords['required']),
    properties: isObject(keywords['properties']) ? publishedAll(keywords['properties']) : undefined,
    items: isObject(keywords['items']) ? publishedPart(keywords['items']) : undefined,
    additionalProperties: isObject(keywords['additionalProperties'])
      ? publishedPart(keywords['additionalProperties'])
      : undefined,
  }
  const present = Object.entries(shown).filter(([, value]) => value !== undefined)
  return Object.fromEntries(present.sort(([one], [other]) => place(one) - place(other)))
}

function publishedPart(schema: object): JsonSchema {
  return '$id' in schema ? ref('schemas', String(schema.$id)) : published(schema)
}

function publishedAll(members: object): JsonSchema {
  return Object.fromEntries(Object.entries(members).map(([name, one]) => [name, publishedPart(one as object)]))
}

function isEmpty(names: unknown): boolean {
  return Array.isArray(names) && names.length === 0
}

function place(keyword: string): number {
  const found = ORDER.indexOf(keyword)
  return found < 0 ? ORDER.length : found
}
