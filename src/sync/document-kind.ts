import { createOutline, type Outline } from '../json/outline.ts'
import type { DocumentKind } from '../resources.ts'

/** Looks at a document as it comes and says at the end what it is. */
export interface KindCheck {
  write(bytes: Buffer): void
  /** Its media type, or the reason why it is not what it should be. */
  end(): { type: string } | { refused: string }
}

const HEAD_BYTES = 1024

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
  let size = 0
  return {
    write(bytes) {
      if (size < HEAD_BYTES) head.push(Buffer.from(bytes.subarray(0, HEAD_BYTES)))
      size += bytes.length
      outline.write(bytes)
    },
    end() {
      if (size === 0) return { refused: 'the document is empty' }
      const start = Buffer.concat(head)
        .toString('utf8')
        .replace(/^\ufeff/, '')
        .trimStart()
      if (/^<(!doctype\s+html|html|head|body)/i.test(start)) {
        return { refused: `it is a page of HTML, not ${NAMES[kind]}` }
      }
      const type = judge(kind, start, outline.end())
      return type === null ? { refused: `it is not ${NAMES[kind]}` } : { type }
    },
  }
}

function judge(kind: DocumentKind, start: string, outline: Outline): string | null {
  if (kind === 'text') return outline.sound ? 'application/json' : 'text/plain; charset=utf-8'
  // Beside a provenance stands the key that it was signed with.
  if (kind === 'provenance' && start.startsWith('-----BEGIN ')) return 'application/x-pem-file'
  if (kind === 'sbom') {
    if (start.startsWith('SPDXVersion:')) return 'text/spdx; charset=utf-8'
    if (/^<\?xml|^<bom\b/.test(start) && start.includes('cyclonedx.org')) {
      return 'application/vnd.cyclonedx+xml'
    }
  }
  if (!outline.sound) return null
  return (
    isAttested(outline) ??
    (kind === 'sbom' ? sbom(outline) : kind === 'vex' ? vex(outline) : gcb(outline))
  )
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
