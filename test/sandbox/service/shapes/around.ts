import type { ArtifactUrls } from './artifact.ts'
import type { ArtifactForm } from './forms.ts'

/** A body and its media type. */
interface Enclosed {
  bytes: Buffer
  type: string
}

/** Puts a document into what a shape has around it; the document's own bytes are kept where the form allows it. */
export function enclosed(around: ArtifactForm['around'], document: Enclosed): Enclosed {
  const { bytes } = document
  const type = 'application/json'
  const between = (before: string, after: string): Enclosed => {
    return { bytes: Buffer.concat([Buffer.from(before), bytes, Buffer.from(after)]), type }
  }
  switch (around) {
    case 'json-api':
      return between('{"data":{"id":"1","attributes":{"document":', '}}}')
    case 'list':
      return between('[', ']')
    case 'lines':
      return {
        bytes: Buffer.from(`${lineOf(bytes)}\n${lineOf(bytes)}\n`),
        type: 'application/jsonl',
      }
    case 'text':
      return jsonOf({ encoding: 'utf-8', content: bytes.toString() })
    case 'base64':
      return jsonOf({ encoding: 'base64', content: bytes.toString('base64') })
    case undefined:
      return document
  }
}

function lineOf(bytes: Buffer): string {
  return JSON.stringify(JSON.parse(bytes.toString()))
}

function jsonOf(value: object): Enclosed {
  return { bytes: Buffer.from(JSON.stringify(value)), type: 'application/json' }
}

/** Where the service and its artifact host are reached. */
interface Places {
  /** The URL that was asked for. */
  self: string
  artifactUrl: string
}

/** The body of an answer with other links than those to documents; undefined: the shape has none. */
export function linkedBody(
  links: ArtifactForm['links'],
  { urls }: ArtifactUrls,
  { self, artifactUrl }: Places,
): unknown {
  const downloads = urls.length === 1 ? { href: urls[0] } : urls.map((href) => ({ href }))
  if (links === 'hal') return { _links: { self: { href: self } }, download: downloads }
  if (links === 'relative') return { links: { download: downloads } }
  if (links !== 'documented') return undefined
  return { documentation: `${artifactUrl}/documentation`, files: downloads }
}

/** What an artifact is answered while it is in the making, with 200. */
export const UNFINISHED_ANSWERS = {
  processing: { status: 'processing' },
  empty: {},
  null: { url: null },
  blank: { url: '' },
  spaces: { url: 'http://127.0.0.1:9/not here.json' },
  network: { url: '//127.0.0.1:9/sbom.json' },
} as const satisfies Record<string, object>
