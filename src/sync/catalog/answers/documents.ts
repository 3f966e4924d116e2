import { MirrorError } from '../../../core/errors.ts'
import { isHtmlPage } from '../../../core/text.ts'
import type { DocumentKind } from '../../../domain/resources.ts'
import type { CatalogLink } from '../../../store/catalog/answers.ts'
import type { DocumentSink } from '../../../store/catalog/documents.ts'
import type { CatalogContext } from '../context.ts'
import type { Task } from './plan.ts'
import {
  type DocumentContent,
  type DocumentFormat,
  type DocumentForm,
  servedType,
} from './document-type.ts'
import { type Outline, createOutline } from '../../../json/outline.ts'

/** A link from an answer to a stored document. */
export type LinkedDocument = Omit<CatalogLink, 'at'>

/** Stores a document from memory; `given` is the Content-Type that it was sent with. Returns the link to it. */
export async function storeDocument(
  { store, keep, now }: CatalogContext,
  body: Buffer,
  given: string,
  content: DocumentContent,
): Promise<LinkedDocument> {
  const sink = store.catalog.openDocument()
  sink.write(body)
  await sink.pack(true)
  return keep(() => finishDocument(sink, given, content, Math.floor(now() / 1000)))
}

/** Finishes a document; the link contains a media type only where it differs from the type stored with the document. */
function finishDocument(
  sink: DocumentSink,
  given: string,
  content: DocumentContent,
  changed: number,
): LinkedDocument {
  const { digest, type: stored } = sink.end(content.type, changed)
  const type = servedType(given, content)
  return type === stored ? { digest } : { digest, type }
}

/**
 * Fetches a document, checks its kind and stores it by its digest, with at most one chunk in memory. Throws
 * `upstream_*`, in which case nothing is stored.
 */
export async function streamDocument(
  context: CatalogContext,
  url: string,
  { document, path }: Task,
): Promise<LinkedDocument> {
  const { keep, now } = context
  const incoming = createIncoming(context, document ?? 'text')
  try {
    await context.fetchDocument(url, incoming)
    const { sink, check, given } = incoming.current()
    const checked = check.end()
    if ('refused' in checked) throw new MirrorError('upstream_shape', `${path}: ${checked.refused}`)
    await sink.pack(true)
    const changed = Math.floor(now() / 1000)
    const end = (): LinkedDocument => finishDocument(sink, given, checked, changed)
    return await keep(end)
  } catch (error) {
    await incoming.abort()
    throw error
  }
}

function createIncoming({ store }: CatalogContext, kind: DocumentKind) {
  let current: { sink: DocumentSink; check: KindCheck; given: string } | null = null
  const abort = async (): Promise<void> => {
    const { sink } = current ?? {}
    if (sink !== undefined) await store.exclusive(() => sink.abort())
    current = null
  }
  const packChunk = async (sink: DocumentSink): Promise<void> => {
    await sink.pack()
    await store.exclusive(() => sink.flush())
  }
  return {
    async begin(given: string) {
      await abort()
      current = { sink: store.catalog.openDocument(), check: createKindCheck(kind), given }
    },
    write(bytes: Buffer): Promise<void> | undefined {
      if (current === null) return undefined
      const { sink, check } = current
      check.write(bytes)
      return sink.write(bytes) ? packChunk(sink) : undefined
    },
    current() {
      if (current === null)
        throw new MirrorError(
          'internal',
          'a document was finished before its first byte was written',
        )
      return current
    },
    abort,
  }
}

/** Incremental check of a document's kind. */
interface KindCheck {
  write(bytes: Buffer): void
  /** Returns the detected content, or the reason why the document is not of the expected kind. */
  end(): DocumentContent | { refused: string }
}

const HEAD_BYTES = 1024
const STYLE_SHEET = '<?xml-stylesheet'

const NAMES: Record<DocumentKind, string> = {
  sbom: 'a CycloneDX or SPDX document',
  vex: 'an OpenVEX, CycloneDX or CSAF document',
  provenance: 'an in-toto statement, a DSSE envelope or a Sigstore bundle',
  text: 'a text',
}

/** Creates a check that a document is of the expected kind (CycloneDX/SPDX, VEX, in-toto), in constant memory. */
export function createKindCheck(kind: DocumentKind): KindCheck {
  const outline = createOutline()
  const head: Buffer[] = []
  const style = createSearch(STYLE_SHEET)
  let size = 0
  let mayBeXml = true
  return {
    write(bytes) {
      if (size < HEAD_BYTES) head.push(Buffer.from(bytes.subarray(0, HEAD_BYTES)))
      if (size === 0) mayBeXml = !isJsonStart(bytes)
      size += bytes.length
      outline.write(bytes)
      if (mayBeXml) style.write(bytes)
    },
    end() {
      if (size === 0) return { refused: 'the document is empty' }
      const first = Buffer.concat(head)
      const start = first
        .toString('utf8')
        .replace(/^\ufeff/, '')
        .trimStart()
      if (isHtmlPage(start)) {
        return { refused: `it is an HTML page, not ${NAMES[kind]}` }
      }
      const summary = outline.end()
      const type = detectType(kind, start, summary)
      if (type === null) return { refused: `it is not ${NAMES[kind]}` }
      const form = formOf(start, summary, first.includes(0))
      return { type, form, format: formatOf(start, summary), styled: style.found() }
    },
  }
}

/** Whether a text begins as a JSON object or list does: it is never served as XML then. */
function isJsonStart(bytes: Buffer): boolean {
  return bytes[0] === 0x7b || bytes[0] === 0x5b
}

/** Searches for a text in a stream of chunks, also across chunk boundaries. */
function createSearch(text: string): { write(bytes: Buffer): void; found(): boolean } {
  let last: Buffer | null = null
  let found = false
  return {
    write(bytes) {
      const end = Buffer.from(bytes.subarray(1 - text.length)) // a copy: the bytes are freed once they are stored
      if (last === null) {
        found = bytes.includes(text)
        last = end
        return
      }
      found ||=
        bytes.includes(text) || Buffer.concat([last, bytes.subarray(0, text.length)]).includes(text)
      last = Buffer.concat([last, end]).subarray(1 - text.length)
    },
    found: () => found,
  }
}

function detectType(kind: DocumentKind, start: string, outline: Outline): string | null {
  if (kind === 'text') return outline.sound ? 'application/json' : 'text/plain; charset=utf-8'
  // A provenance artifact can be the public key that its signature is verified with.
  if (kind === 'provenance' && start.startsWith(PEM)) return 'application/x-pem-file'
  if (kind === 'sbom') {
    if (start.startsWith(SPDX)) return 'text/spdx; charset=utf-8'
    if (isCycloneDxXml(start)) return 'application/vnd.cyclonedx+xml'
  }
  if (!outline.sound) return null
  return (
    attestationType(outline) ??
    (kind === 'sbom' ? sbomType(outline) : kind === 'vex' ? vexType(outline) : wrapperType(outline))
  )
}

const PEM = '-----BEGIN '
const SPDX = 'SPDXVersion:'

function isCycloneDxXml(start: string): boolean {
  return /^<\?xml|^<bom\b/.test(start) && start.includes('cyclonedx.org')
}

function formOf(start: string, { sound, values }: Outline, hasNul: boolean): DocumentForm {
  if (sound) return values > 1 ? 'lines' : 'json'
  if (start.startsWith(PEM)) return 'pem'
  if (/^<(?:\?xml\b|!--|!doctype\b|[a-z_][\w:.-]*[\s/>])/i.test(start)) return 'xml'
  return hasNul ? 'binary' : 'text'
}

/** Returns the format of a document, independent of the requested kind. */
function formatOf(start: string, outline: Outline): DocumentFormat | null {
  if (start.startsWith(SPDX)) return 'spdx'
  if (isCycloneDxXml(start)) return 'cyclonedx'
  if (!outline.sound) return null
  if ((attestationType(outline) ?? wrapperType(outline)) !== null) return 'attestation'
  const type = sbomType(outline)
  if (type !== null) return type.includes('spdx') ? 'spdx' : 'cyclonedx'
  if (vexType(outline) === null) return null
  return outline.members.get('@context')?.includes('openvex') === true ? 'openvex' : 'csaf'
}

/** Detects an in-toto statement, or an envelope or bundle around one; any kind of document can be sent in one. */
function attestationType({ members, values }: Outline): string | null {
  const lines = values > 1
  const json = lines ? 'application/jsonl' : 'application/json'
  if (members.get('_type')?.startsWith('https://in-toto.io/Statement') === true) {
    return lines ? json : 'application/vnd.in-toto+json'
  }
  if (members.has('payloadType') && members.has('payload')) return json
  if (members.has('dsseEnvelope') || members.has('verificationMaterial')) return json
  return null
}

function sbomType({ members }: Outline): string | null {
  if (members.get('bomFormat') === 'CycloneDX') return 'application/vnd.cyclonedx+json'
  if (members.get('spdxVersion')?.startsWith('SPDX-') === true) return 'application/spdx+json'
  return members.get('@context')?.includes('spdx.org') === true ? 'application/spdx+json' : null
}

function vexType({ members }: Outline): string | null {
  if (members.get('@context')?.includes('openvex') === true) return 'application/json'
  if (members.get('bomFormat') === 'CycloneDX') return 'application/vnd.cyclonedx+json'
  // Scanner databases publish CSAF in an envelope that names its schema.
  const wrapped = members.has('item') && members.get('schema')?.includes('csaf') === true
  return members.has('document') || wrapped ? 'application/json' : null
}

/** Detects the wrapper that registries and build services put around provenance. */
function wrapperType({ members }: Outline): string | null {
  const wrapped = members.has('provenance_summary') || members.has('attestations')
  return wrapped ? 'application/json' : null
}
