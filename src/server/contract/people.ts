import { type HeaderName, headersOf } from './components.ts'
import type { DeclaredAnswer, PathOperation } from './openapi.ts'

const TEXT = { type: 'string' }

/** Header fields of every page for people. */
const PAGE_HEADERS = [
  ...(['Cache-Control', 'Vary', 'Content-Security-Policy', 'X-Content-Type-Options'] as const),
  ...(['Referrer-Policy', 'Cross-Origin-Opener-Policy', 'Cross-Origin-Resource-Policy'] as const),
] as const

/** An answer that is a page. */
export function pageAnswer(description: string, more: readonly HeaderName[] = []): DeclaredAnswer {
  const headers = headersOf(...PAGE_HEADERS, ...more)
  return { description, headers, content: { 'text/html': { schema: TEXT } } }
}

/** A page for people. The document of the API lists none: pages are no contract, and their addresses may change. */
export interface PeoplePage {
  readonly path: string
  /** The parameters of its query, each with what it is. */
  readonly parameters: Readonly<Record<string, string>>
}

/** Returns the parameters of a page, as its route declares them: it takes no others. */
export function pageParameters({ parameters }: PeoplePage): NonNullable<PathOperation['parameters']> {
  return Object.entries(parameters).map(([name, description]) => ({
    name,
    in: 'query',
    required: false,
    description,
    schema: { ...TEXT, maxLength: 1000 },
  }))
}
