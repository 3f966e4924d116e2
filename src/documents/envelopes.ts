import { MirrorError } from '../base/errors.ts'
import { type Fields, eachObject, fieldsOf, isObject, jsonTextOf } from '../base/json/objects.ts'
import { plainText } from '../base/text.ts'
import { isCsafItem, isStatement, membersIn } from './formats.ts'

/** How documents of a kind are opened. */
export interface Opening {
  /** What is opened, in messages. */
  readonly what: string
  /** How to write what is in another format, in messages; null: who reads them cannot write it. */
  readonly formats: string | null
  /** Returns why JSON must not be parsed; null: it may be. */
  readonly refuse: (bytes: Buffer) => string | null
}

/** Lines of a file in JSON Lines, and elements of a list: attestations of one image are a few. */
const MOST_DOCUMENTS = 1_000

/** Returns the error for what cannot be read, in one line. */
export function unreadableAs(what: string, why: string, cause?: unknown): MirrorError {
  return new MirrorError('bad_request', `${what} cannot be read: ${plainText(why)}`, { cause })
}

/** The documents of a file. */
interface FileDocuments {
  readonly documents: readonly Fields[]
  /** Whether the file is its one document, and no list or lines. */
  readonly isOne: boolean
}

/**
 * Parses a file: one document in JSON, a list of them, or several in JSON Lines, as attestations are written. Throws
 * `bad_request`.
 */
export function documentsIn(bytes: Buffer, opening: Opening): FileDocuments {
  const costly = opening.refuse(bytes)
  if (costly !== null) throw unreadableAs(opening.what, costly)
  const text = jsonTextOf(bytes)
  const value = wholeOrNull(text, opening)
  if (value === null) return { documents: linesIn(text, opening).map(fieldsOf), isOne: false }
  if (!Array.isArray(value.whole)) return { documents: [fieldsOf(value.whole)], isOne: true }
  if (value.whole.length <= MOST_DOCUMENTS) return { documents: value.whole.map(fieldsOf), isOne: false }
  throw unreadableAs(opening.what, `it is a list of more than ${MOST_DOCUMENTS} documents`)
}

/** Parses a text that is one value; null: it may be several lines. Throws `bad_request` for anything else. */
function wholeOrNull(text: string, opening: Opening): { readonly whole: unknown } | null {
  try {
    return { whole: parse(text, opening) }
  } catch (error) {
    const [first = '', second = ''] = text.split('\n', MOST_DOCUMENTS).filter(isFilled)
    if (second === '' || !isJson(first)) throw error
    return null
  }
}

function linesIn(text: string, opening: Opening): unknown[] {
  const lines = text.trimEnd().split('\n', MOST_DOCUMENTS + 1)
  if (lines.length > MOST_DOCUMENTS)
    throw unreadableAs(opening.what, `it has more than ${MOST_DOCUMENTS} lines of JSON`)
  return lines.filter(isFilled).map((line) => parse(line, opening))
}

function isFilled(line: string): boolean {
  return line.trim() !== ''
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Envelopes within each other that are opened: a bundle, its DSSE envelope, its statement, and a predicate as text. */
const MAX_ENVELOPES = 4

/**
 * Iterates over a document and what is in its envelopes, from the outermost: a Sigstore bundle, a DSSE envelope, an in-toto
 * statement, an item of a scanner database. Signatures are not checked. Throws `bad_request`.
 */
export function* envelopesOf(outermost: Fields, opening: Opening): Generator<Fields, void, undefined> {
  let document: Fields | null = outermost
  for (let opened = 0; opened <= MAX_ENVELOPES && document !== null; opened++) {
    yield document
    document = contentOf(document, opening)
  }
}

/** What is in an envelope; null for what is none. */
function contentOf(document: Fields, opening: Opening): Fields | null {
  const { dsseEnvelope, payload, item } = document
  if (isObject(dsseEnvelope)) return dsseEnvelope
  if (typeof payload === 'string') return parseContent(Buffer.from(payload, 'base64'), opening)
  if (isObject(item) && isCsafItem(membersIn(document))) return item
  const predicate = predicateOf(document)
  if (typeof predicate === 'string') return parseContent(Buffer.from(predicate), opening)
  if (!isObject(predicate)) return null
  const { Data: data } = predicate // cosign's own form of a predicate
  if (typeof data === 'string') return parseContent(Buffer.from(data), opening)
  return isObject(data) ? data : predicate
}

/** Returns what a statement says, under the names that services use for it. */
export function predicateOf({ predicate, slsaProvenance, provenance }: Fields): unknown {
  return predicate ?? slsaProvenance ?? provenance
}

/** Returns the digests of the subjects of an in-toto statement, `sha256:…`. */
export function subjectDigests({ subject }: Fields): string[] {
  const named = eachObject(subject).flatMap(({ digest }) => Object.entries(fieldsOf(digest)))
  return named.map(([kind, hex]) => `${kind}:${typeof hex === 'string' ? hex : ''}`.toLowerCase())
}

function parseContent(bytes: Buffer, opening: Opening): Fields {
  const costly = opening.refuse(bytes)
  if (costly !== null) throw unreadableAs(opening.what, costly)
  return fieldsOf(parse(jsonTextOf(bytes), opening))
}

/** Lists within lists, and wrappers of registries and build services, that are looked through. */
const MAX_DEPTH = 8

/** Members that contain a statement or an envelope of one; the first of them that leads to a statement is used. */
const WRAPPERS = [
  ...['envelope', 'bundle', 'attestations', 'provenance_summary', 'provenance', 'build'],
  ...['inTotoSlsaProvenanceV1', 'intotoStatement'],
]

/**
 * Returns the in-toto statements of a value: bare, in envelopes, in what registries and build services put around them, or in
 * lists of these. What cannot be read is none.
 */
export function statementsIn(value: unknown, opening: Opening, depth = 0): Fields[] {
  if (depth > MAX_DEPTH) return []
  if (Array.isArray(value))
    return (value as unknown[]).slice(0, MOST_DOCUMENTS).flatMap((one) => statementsIn(one, opening, depth + 1))
  if (!isObject(value)) return []
  const statement = statementOf(value, opening)
  if (statement !== null) return [statement]
  for (const name of WRAPPERS) {
    const found = statementsIn(value[name], opening, depth + 1)
    if (found.length > 0) return found
  }
  return []
}

/** The outermost statement of a document in envelopes; null for none. */
function statementOf(document: Fields, opening: Opening): Fields | null {
  try {
    for (const one of envelopesOf(document, opening)) if (isStatement(membersIn(one))) return one
  } catch {
    // Its envelope has no JSON, or too much.
  }
  return null
}

/** Parses JSON. Throws `bad_request`, which says what it is instead. */
function parse(text: string, { what, formats }: Opening): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw unreadableAs(what, refusalOf(text, formats === null ? '' : `: write it as ${formats}`), cause)
  }
}

const COMPRESSED = 'it is compressed: unpack it first'

function refusalOf(text: string, write: string): string {
  return KINDS.find(([form]) => form.test(text))?.[1](write) ?? `it is not valid JSON${write}`
}

/** Forms of what is no JSON, by the beginning of its bytes as UTF-8, and what to do. */
const KINDS: readonly [form: RegExp, kind: (write: string) => string][] = [
  [/^\s*$/, (write) => `it is empty${write}`],
  [/^\s*</, (write) => `it is XML${write}`],
  [/^(?:\p{Cc}\ufffd|\(\ufffd\/\ufffd|\ufffd7zXZ\0)/u, () => COMPRESSED], // gzip, zstd, xz
  [/^PK\p{Cc}/u, () => 'it is a ZIP archive: unpack it first'],
  [/^(?:\ufffd\ufffd|.?\0|\0.)/s, (write) => `it is not in UTF-8${write}`],
]
