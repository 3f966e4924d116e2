import type { DocumentKind } from '../../../base/domain/resources.ts'
import { isObject, jsonTextOf } from '../../../base/json/objects.ts'
import { type JsonPath, type Slice, elementsOf, membersOf, skipSpace } from '../../../base/json/slices.ts'
import type { DocumentContent } from './document-type.ts'
import { createKindCheck, isDocumentValue } from './kind-check.ts'

/** A document that stands in an answer itself. */
export interface InlineDocument {
  /** Its place in the answer. */
  readonly at: JsonPath
  readonly bytes: Buffer
  readonly content: DocumentContent
}

/** Nesting down to which documents are looked for: more than any real answer has. */
const MAX_DEPTH = 64
/** Shortest text that can be a document. */
const SHORTEST = 16

/** Returns the documents of a kind in a JSON answer, wherever they stand; what is within one is not looked at. */
export function findInline(kind: DocumentKind, body: Buffer, value: unknown): InlineDocument[] {
  const found: InlineDocument[] = []
  const marks = markDocuments(kind, value)
  const take = (at: JsonPath, bytes: Buffer): void => {
    const content = contentOf(kind, bytes)
    if (content !== null) found.push({ at, bytes, content })
  }
  /** Only what contains a document is located in the text, which takes long in large answers. */
  const visit = (inner: unknown, { start, end }: Slice, at: JsonPath): void => {
    if (!marks.has(inner)) return
    if (typeof inner === 'string') take(at, documentText(inner) ?? Buffer.alloc(0))
    else if (marks.get(inner) === 'document') take(at, body.subarray(start, end))
    else if (Array.isArray(inner)) {
      let place = 0
      for (const slice of elementsOf(body, start)) visit(inner[place], slice, [...at, place++])
    } else if (isObject(inner))
      for (const { name, value: slice } of membersOf(body, start)) visit(inner[name], slice, [...at, name])
  }
  visit(value, { start: skipSpace(body, 0), end: body.length }, [])
  return found
}

/** Returns the values that may be documents, and those that contain some. */
function markDocuments(kind: DocumentKind, value: unknown): Map<unknown, 'document' | 'around'> {
  const marks = new Map<unknown, 'document' | 'around'>()
  const mark = (inner: unknown, depth: number): boolean => {
    const isDocument =
      typeof inner === 'string' ? documentText(inner) !== null : isObject(inner) && isDocumentValue(kind, inner)
    if (isDocument) marks.set(inner, 'document')
    if (isDocument || typeof inner !== 'object' || inner === null || depth > MAX_DEPTH) return isDocument
    let isAround = false
    for (const one of Object.values(inner)) if (mark(one, depth + 1)) isAround = true
    if (isAround) marks.set(inner, 'around')
    return isAround
  }
  mark(value, 0)
  return marks
}

/** Returns whether any line of a text is a document of a kind. */
export function hasDocumentLine(kind: DocumentKind, body: Buffer): boolean {
  return jsonTextOf(body)
    .split('\n')
    .some((line) => isDocumentLine(kind, line))
}

function isDocumentLine(kind: DocumentKind, line: string): boolean {
  if (!line.trimStart().startsWith('{')) return false
  try {
    const value: unknown = JSON.parse(line)
    return isObject(value) && isDocumentValue(kind, value)
  } catch {
    return false
  }
}

function contentOf(kind: DocumentKind, bytes: Buffer): DocumentContent | null {
  const check = createKindCheck(kind)
  check.write(bytes)
  const checked = check.end()
  return 'refused' in checked ? null : checked
}

/** How a document begins. */
const START = /^\s*(?:[{[]|<\?xml|<bom\b|SPDXVersion:|-----BEGIN )/
const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/

/** Returns the bytes of a text that may be a document, plain or in Base64; null for any other text. */
function documentText(text: string): Buffer | null {
  if (text.length < SHORTEST) return null
  if (START.test(text)) return Buffer.from(text)
  const packed = text.replace(/\s+/g, '')
  if (!BASE64.test(packed)) return null
  const bytes = Buffer.from(packed, 'base64')
  return START.test(bytes.toString('latin1', 0, 64)) ? bytes : null
}

/** Lines that only a patch has. */
const PATCH = /^(?:diff |--- |\+\+\+ |Index: |@@ |From [0-9a-f]{40})/m

/** Returns whether the content of a patch stands in an answer. */
export function hasPatchText(value: unknown, depth = 0): boolean {
  if (typeof value === 'string') return value.includes('\n') && PATCH.test(value)
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return false
  return Object.values(value).some((inner) => hasPatchText(inner, depth + 1))
}
