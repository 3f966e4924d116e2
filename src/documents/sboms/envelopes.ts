import { type Fields, fieldsOf, isObject } from '../../base/json/objects.ts'
import { refuseCostly } from '../../base/json/limits.ts'
import { SBOM_FORMATS, unreadable } from './sbom.ts'

/** Envelopes within each other that are opened: a bundle, its DSSE envelope, its statement, and a predicate as text. */
const MAX_ENVELOPES = 4

/**
 * Iterates over a document and what is in its envelopes, from the outermost: a Sigstore bundle, a DSSE envelope, an in-toto
 * statement. Signatures are not checked. Throws what `read`, which parses content in JSON, throws: `bad_request`.
 */
export function* envelopesOf(
  outermost: Fields,
  read: (text: string) => Fields = parseContent,
): Generator<Fields, void, undefined> {
  let document: Fields | null = outermost
  for (let opened = 0; opened <= MAX_ENVELOPES && document !== null; opened++) {
    yield document
    document = contentOf(document, read)
  }
}

/** What is in an envelope; null for what is none. */
function contentOf({ dsseEnvelope, payload, predicate }: Fields, read: (text: string) => Fields): Fields | null {
  if (isObject(dsseEnvelope)) return dsseEnvelope
  if (typeof payload === 'string') return read(Buffer.from(payload, 'base64').toString('utf8'))
  if (typeof predicate === 'string') return read(predicate)
  if (!isObject(predicate)) return null
  const { Data: data } = predicate // cosign's own form of a predicate
  if (typeof data === 'string') return read(data)
  return isObject(data) ? data : predicate
}

/** Throws `bad_request` for JSON that would take gigabytes, or very long, to parse. */
export function refuseCostlySbom(bytes: Buffer): void {
  const costly = refuseCostly(bytes)
  if (costly !== null) throw unreadable(costly)
}

function parseContent(text: string): Fields {
  refuseCostlySbom(Buffer.from(text))
  return parse(text)
}

/** Parses a document in JSON. Throws `bad_request`. */
export function parse(text: string): Fields {
  try {
    return fieldsOf(JSON.parse(text))
  } catch (cause) {
    throw unreadable(refusalOf(text), cause)
  }
}

const WRITE = `write it as ${SBOM_FORMATS}`
const COMPRESSED = 'it is compressed: unpack it first'

/** Forms of what is no JSON, by the beginning of its bytes as UTF-8, and what to do. */
const KINDS: readonly [form: RegExp, kind: string][] = [
  [/^\s*$/, `it is empty: ${WRITE}`],
  [/^\s*</, `it is XML: ${WRITE}`],
  [/^(?:\p{Cc}\ufffd|\(\ufffd\/\ufffd|\ufffd7zXZ\0)/u, COMPRESSED], // gzip, zstd, xz
  [/^PK\p{Cc}/u, 'it is a ZIP archive: unpack it first'],
  [/^(?:\ufffd\ufffd|.?\0|\0.)/s, `it is not in UTF-8: ${WRITE}`],
]

function refusalOf(text: string): string {
  return KINDS.find(([form]) => form.test(text))?.[1] ?? `it is not valid JSON: ${WRITE}`
}
