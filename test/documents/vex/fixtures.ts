import type { StatedFinding } from '../../../src/documents/vex/apply.ts'
import { type JudgedImage, applyVex } from '../../../src/documents/vex/apply.ts'

/** What the clock shows. */
const NOW = Date.parse('2026-07-01T00:00:00Z')

/** A mirrored document, the tags whose it is, and those for which it is believed: without a list all of them. */
interface Mirrored {
  readonly content: unknown
  readonly tags?: readonly string[]
  readonly believedTags?: readonly string[] | null
}

/** A finding of CVE-1 in a component. */
export function findingOf(purl: string, more: Partial<StatedFinding['component']> = {}): StatedFinding {
  return { id: 'CVE-1', aliases: [], upstream: [], component: { purl, version: '', ...more } }
}

/** An image whose SBOM describes these package URLs. */
export function imageOf(subjects: readonly string[], more: Partial<JudgedImage> = {}): JudgedImage {
  return { subjects, images: [], serial: null, tag: null, ...more }
}

/** Whether documents rule a finding out. */
export function isRuledOut(
  documents: readonly Mirrored[],
  one: StatedFinding,
  image: JudgedImage,
  sboms: Readonly<Record<string, object>> = {},
): boolean {
  const contents = documents.map(({ content }) => Buffer.from(JSON.stringify(content)))
  const reads = {
    listVexDocuments: () =>
      documents.map(({ tags = [], believedTags = tags }, at) => ({
        digest: String(at),
        size: 1,
        changed: 1,
        tags,
        believedTags,
      })),
    readVexContent: ({ digest }: { digest: string }) => contents[Number(digest)] ?? null,
    readSbomsOf: (tag: string) => (sboms[tag] === undefined ? [] : [Buffer.from(JSON.stringify(sboms[tag]))]),
  }
  const input = { reads, images: [image], now: NOW, check: () => undefined }
  return applyVex([one], input).suppressed.length === 1
}

/** An OpenVEX document with one statement about CVE-1. */
export function openVexOf(products: readonly unknown[], status = 'not_affected', day = 1): object {
  return {
    '@context': 'https://openvex.dev/ns/v0.2.0',
    timestamp: `2026-01-0${day}T00:00:00Z`,
    statements: [{ vulnerability: { name: 'CVE-1' }, status, products }],
  }
}

/** The digest of an image, of one hexadecimal digit. */
export function digestOf(digit: string): string {
  return `sha256:${digit.repeat(64)}`
}

/** A document as the predicate of an attestation about a digest, in an envelope. */
export function attestedOf(digest: string, predicate: unknown): object {
  const [kind = '', hex = ''] = digest.split(':')
  const subject = [{ name: 'image', digest: { [kind]: hex } }]
  const statement = { _type: 'https://in-toto.io/Statement/v1', subject, predicate }
  const payload = Buffer.from(JSON.stringify(statement)).toString('base64')
  return { payloadType: 'application/vnd.in-toto+json', payload, signatures: [] }
}

/** A catalog with one tag; its item as the service writes it. */
export function catalogOf(item: object) {
  const body = Buffer.from(JSON.stringify(item))
  const entry = { ordinal: 0, id: 't1', body, sha: body }
  const list = { id: 1, path: '/v1/tags', resource: 'tags', frame: '{}', entries: 1, changed: 1, confirmedAt: 1 }
  return {
    readList: () => list,
    readEntry: () => entry,
    listNaming: (text: string) => (body.toString().includes(text) ? [{ list: '/v1/tags', id: 't1', body }] : []),
  }
}
