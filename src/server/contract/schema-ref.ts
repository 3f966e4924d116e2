import { ref } from './components.ts'
import type { SCHEMAS } from './document/schemas.ts'
import type { ComponentRef } from './openapi.ts'

/** Returns a reference to a schema, which is loaded with the document alone. */
export function schemaOf(name: keyof typeof SCHEMAS): ComponentRef {
  return ref('schemas', name)
}
