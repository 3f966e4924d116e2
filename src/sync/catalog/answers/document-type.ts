import { essenceOf, isActive, isMediaType } from '../../../domain/media-type.ts'

/** What a document's bytes are: one JSON value, several (JSON lines), XML, PEM, other text, or none of these. */
export type DocumentForm = 'json' | 'lines' | 'xml' | 'pem' | 'text' | 'binary'

/** A format that a document was recognised as. `attestation`: in-toto, DSSE, Sigstore, or a list of them. */
export type DocumentFormat = 'cyclonedx' | 'spdx' | 'attestation' | 'openvex' | 'csaf'

/** What the content of a document says of itself. */
export interface DocumentContent {
  /** The media type that follows from the content alone. */
  readonly type: string
  readonly form: DocumentForm
  /** Null: none that is known. */
  readonly format: DocumentFormat | null
  /** XML that names a style sheet, which can hold scripts. */
  readonly styled: boolean
}

const OPAQUE = 'application/octet-stream'

/** What stores say of an object whose type nobody gave them. */
const GENERIC =
  /^(?:application|binary)\/(?:x-)?(?:octet-stream|(?:force-)?download|unknown|binary|www-form-urlencoded)$|^unknown\/unknown$|^text\/plain$/

/** Words in the name of a media type, and the format that they claim. */
const NAMED: readonly (readonly [RegExp, DocumentFormat])[] = [
  [/cyclonedx/, 'cyclonedx'],
  [/\bspdx\b/, 'spdx'],
  [/in-?toto|\bdsse\b|sigstore|\bslsa\b/, 'attestation'],
  [/openvex/, 'openvex'],
  [/\bcsaf\b/, 'csaf'],
]

const XML = /^(?:application|text)\/xml$|\+xml$/

/** Names of media types, and the forms that they claim; the first that matches counts. */
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
 * Returns the media type that a document is served with. `given` is the Content-Type that upstream sent: it is taken as it
 * is when it is well-formed, says something, and agrees with the checked content; else the type that follows from the
 * content stands. What a browser would run is never served as such.
 */
export function servedType(given: string, content: DocumentContent): string {
  const text = given.trim()
  const type = isMediaType(text) && agrees(essenceOf(text), content) ? text : content.type
  return isActive(type) || (content.styled && XML.test(essenceOf(type))) ? OPAQUE : type
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
  // A name that claims no form can be that of any text or bytes; of JSON, XML and PEM it must be a vendor's own name.
  const anything = form === 'text' || form === 'binary'
  return anything || named !== null || /^application\/(?:vnd|prs|x)\./.test(essence)
}
