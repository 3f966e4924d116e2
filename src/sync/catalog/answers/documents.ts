import { MirrorError } from '../../../core/errors.ts'
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

/** A stored document as an answer names it. */
export type LinkedDocument = Omit<CatalogLink, 'at'>

/** Keeps a document that is in memory; `given` is the Content-Type it came with. Returns what names it. */
export async function storeDocument(
  { store, config, now }: CatalogContext,
  body: Buffer,
  given: string,
  content: DocumentContent,
): Promise<LinkedDocument> {
  return store.gathered(config.catalog.concurrency, () => {
    const sink = store.openDocument()
    if (sink.write(body)) sink.flush()
    return ended(sink, given, content, Math.floor(now() / 1000))
  })
}

/** Keeps what was written; the answer names a media type where it is not the one that is stored with the document. */
function ended(
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
 * Fetches a document, checks that it is what it claims to be, and keeps it by its digest; never more than a chunk of
 * it is in memory. Throws `upstream_*`; nothing is kept then.
 */
export async function streamDocument(
  context: CatalogContext,
  url: string,
  { document, path }: Task,
): Promise<LinkedDocument> {
  const { store, config, now } = context
  const incoming = createIncoming(context, document ?? 'text')
  try {
    await context.fetchDocument(url, incoming)
    const { sink, check, given } = incoming.current()
    const verdict = check.end()
    if ('refused' in verdict) throw new MirrorError('upstream_shape', `${path}: ${verdict.refused}`)
    const changed = Math.floor(now() / 1000)
    const end = (): LinkedDocument => ended(sink, given, verdict, changed)
    return await store.gathered(config.catalog.concurrency, end)
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
  return {
    async begin(given: string) {
      await abort()
      current = { sink: store.openDocument(), check: createKindCheck(kind), given }
    },
    write(bytes: Buffer): Promise<void> | undefined {
      if (current === null) return undefined
      const { sink, check } = current
      check.write(bytes)
      return sink.write(bytes) ? store.exclusive(() => sink.flush()) : undefined
    },
    current() {
      if (current === null) throw new MirrorError('internal', 'a document ended before it began')
      return current
    },
    abort,
  }
}

/** Looks at a document as it comes and says at the end what it is. */
interface KindCheck {
  write(bytes: Buffer): void
  /** What it is, its media type among it, or the reason why it is not what it should be. */
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

/** A check that a document is the kind it claims to be (CycloneDX/SPDX, VEX, in-toto), in constant memory. */
export function createKindCheck(kind: DocumentKind): KindCheck {
  const outline = createOutline()
  const head: Buffer[] = []
  const style = createSearch(STYLE_SHEET)
  let size = 0
  return {
    write(bytes) {
      if (size < HEAD_BYTES) head.push(Buffer.from(bytes.subarray(0, HEAD_BYTES)))
      size += bytes.length
      outline.write(bytes)
      style.write(bytes)
    },
    end() {
      if (size === 0) return { refused: 'the document is empty' }
      const first = Buffer.concat(head)
      const start = first
        .toString('utf8')
        .replace(/^\ufeff/, '')
        .trimStart()
      if (/^<(!doctype\s+html|html|head|body)/i.test(start)) {
        return { refused: `it is a page of HTML, not ${NAMES[kind]}` }
      }
      const whole = outline.end()
      const type = judge(kind, start, whole)
      if (type === null) return { refused: `it is not ${NAMES[kind]}` }
      const form = formOf(start, whole, first.includes(0))
      return { type, form, format: formatOf(start, whole), styled: style.found() }
    },
  }
}

/** Looks for a text in what comes in pieces, wherever they were cut. */
function createSearch(text: string): { write(bytes: Buffer): void; found(): boolean } {
  let last = Buffer.alloc(0)
  let found = false
  return {
    write(bytes) {
      found ||=
        bytes.includes(text) || Buffer.concat([last, bytes.subarray(0, text.length)]).includes(text)
      last = Buffer.from(
        Buffer.concat([last, bytes.subarray(1 - text.length)]).subarray(1 - text.length),
      )
    },
    found: () => found,
  }
}

function judge(kind: DocumentKind, start: string, outline: Outline): string | null {
  if (kind === 'text') return outline.sound ? 'application/json' : 'text/plain; charset=utf-8'
  // Beside a provenance stands the key that it was signed with.
  if (kind === 'provenance' && start.startsWith(PEM)) return 'application/x-pem-file'
  if (kind === 'sbom') {
    if (start.startsWith(SPDX)) return 'text/spdx; charset=utf-8'
    if (isCycloneDxXml(start)) return 'application/vnd.cyclonedx+xml'
  }
  if (!outline.sound) return null
  return (
    isAttested(outline) ??
    (kind === 'sbom' ? sbom(outline) : kind === 'vex' ? vex(outline) : gcb(outline))
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

/** The format of a document, whatever kind of document was asked for. */
function formatOf(start: string, outline: Outline): DocumentFormat | null {
  if (start.startsWith(SPDX)) return 'spdx'
  if (isCycloneDxXml(start)) return 'cyclonedx'
  if (!outline.sound) return null
  if ((isAttested(outline) ?? gcb(outline)) !== null) return 'attestation'
  const type = sbom(outline)
  if (type !== null) return type.includes('spdx') ? 'spdx' : 'cyclonedx'
  if (vex(outline) === null) return null
  return outline.members.get('@context')?.includes('openvex') === true ? 'openvex' : 'csaf'
}

/** A statement, or an envelope or bundle around one; any kind of document can come in one. */
function isAttested({ members, values }: Outline): string | null {
  const lines = values > 1
  const json = lines ? 'application/jsonl' : 'application/json'
  if (members.get('_type')?.startsWith('https://in-toto.io/Statement') === true) {
    return lines ? json : 'application/vnd.in-toto+json'
  }
  if (members.has('payloadType') && members.has('payload')) return json
  if (members.has('dsseEnvelope') || members.has('verificationMaterial')) return json
  return null
}

function sbom({ members }: Outline): string | null {
  if (members.get('bomFormat') === 'CycloneDX') return 'application/vnd.cyclonedx+json'
  if (members.get('spdxVersion')?.startsWith('SPDX-') === true) return 'application/spdx+json'
  return members.get('@context')?.includes('spdx.org') === true ? 'application/spdx+json' : null
}

function vex({ members }: Outline): string | null {
  if (members.get('@context')?.includes('openvex') === true) return 'application/json'
  if (members.get('bomFormat') === 'CycloneDX') return 'application/vnd.cyclonedx+json'
  // Scanners' databases hand CSAF on in an envelope that names its schema.
  const wrapped = members.has('item') && members.get('schema')?.includes('csaf') === true
  return members.has('document') || wrapped ? 'application/json' : null
}

/** What registries and build services wrap provenance in. */
function gcb({ members }: Outline): string | null {
  const wrapped = members.has('provenance_summary') || members.has('attestations')
  return wrapped ? 'application/json' : null
}
