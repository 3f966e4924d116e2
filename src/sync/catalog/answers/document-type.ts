import { essenceOf, isActive, isMediaType } from '../../../base/domain/media-type.ts'

/** Form of a document's bytes: one JSON value, several (JSON lines), XML, PEM, other text, or none of these. */
export type DocumentForm = 'json' | 'lines' | 'xml' | 'pem' | 'text' | 'binary'

/** Recognised format of a document. `attestation`: in-toto, DSSE, Sigstore, or a list of them. */
export type DocumentFormat = 'cyclonedx' | 'spdx' | 'attestation' | 'openvex' | 'csaf'

/** Properties of a document that follow from its content alone. */
export interface DocumentContent {
  /** Media type detected from the content. */
  readonly type: string
  readonly form: DocumentForm
  /** Detected format; null: not a known one. */
  readonly format: DocumentFormat | null
  /** Whether it is XML with a style sheet reference; style sheets can contain scripts. */
  readonly styled: boolean
}

/** Returns whether a document that was cut off would not be of its kind. */
export function showsEnd({ form, format, type }: DocumentContent): boolean {
  return form === 'json' || type === GZIP_TYPE || (form === 'xml' && format === 'cyclonedx')
}

/** The type of a gzip file with a document in it. */
export const GZIP_TYPE = 'application/gzip'

const JSON_TYPE = 'application/json'
const OPAQUE = 'application/octet-stream'

/** Generic types that object stores send for an object that was stored without a type. */
const GENERIC =
  /^(?:application|binary)\/(?:x-)?(?:octet-stream|(?:force-)?download|unknown|binary|www-form-urlencoded)$|^unknown\/unknown$|^text\/plain$/

/** Name parts of media types and the format that each claims. */
const NAMED: readonly (readonly [RegExp, DocumentFormat])[] = [
  [/cyclonedx/, 'cyclonedx'],
  [/\bspdx\b/, 'spdx'],
  [/in-?toto|\bdsse\b|sigstore|\bslsa\b/, 'attestation'],
  [/openvex/, 'openvex'],
  [/\bcsaf\b/, 'csaf'],
]

const XML = /^(?:application|text)\/xml$|\+xml$/

/** Patterns of media types and the forms that they claim; the first match counts. */
const CLAIMS: readonly (readonly [RegExp, readonly DocumentForm[]])[] = [
  [/\b(?:jsonl|ndjson|jsonlines|json-lines|json-seq)\b/, ['json', 'lines']],
  [/^(?:application|text)\/(?:x-)?json$|\+json$/, ['json']],
  [XML, ['xml']],
  [/\bpem\b/, ['pem']],
  [/\b(?:pgp|x509|pkix|pkcs\d*)\b/, ['pem', 'binary']],
  [
    /\b(?:g?zip|x?tar|gtar|tgz|bzip2?|xz|zstd|7z|rar|compress|compressed|pdf|wasm|protobuf|cbor|msgpack|der|ber|octet-stream|java-archive)\b/,
    ['binary'],
  ],
  [/\b(?:ya?ml|toml|patch|diff|sql)\b/, ['text']],
]

/**
 * Returns the media type that a document is served with. `given` is the Content-Type that upstream sent: it is used
 * unchanged when it is well-formed, specific, and agrees with the checked content; otherwise the detected type is
 * used. A document that a browser would execute is served as `application/octet-stream`.
 */
export function servedType(given: string, content: DocumentContent): string {
  const text = given.trim()
  const type = isMediaType(text) && agrees(essenceOf(text), content) ? text : content.type
  return isActive(type) || (content.styled && XML.test(essenceOf(type))) ? OPAQUE : type
}

/** Returns the media type that JSON is served with where it is another than `application/json`; null otherwise. */
export function jsonType(given: string): string | null {
  const type = servedType(given, { type: JSON_TYPE, form: 'json', format: null, styled: false })
  return type === JSON_TYPE ? null : type
}

function agrees(essence: string, { type, form, format }: DocumentContent): boolean {
  if (essence === essenceOf(type)) return true
  const named = NAMED.find(([words]) => words.test(essence))?.[1] ?? null
  if (named !== null && named !== format) return false
  if (isActive(essence)) return format === null && ['text', 'xml', 'binary'].includes(form)
  if (GENERIC.test(essence)) return form === 'binary' && essence.endsWith('/octet-stream')
  const claimed = CLAIMS.find(([words]) => words.test(essence))?.[1]
  if (claimed !== undefined) return claimed.includes(form)
  if (essence.startsWith('text/')) return form === 'text'
  if (!essence.startsWith('application/')) return false
  // A media type that claims no form fits any text or binary content; for JSON, XML and PEM it must be a vendor's own
  // type.
  const anything = form === 'text' || form === 'binary'
  return anything || named !== null || /^application\/(?:vnd|prs|x)\./.test(essence)
}
