import { type Representation, JSON_TYPE, etagOf } from '../../feed/representation.ts'
import { gzipSync } from 'node:zlib'
import { NEWEST } from './tickets.ts'
import type { Random } from '../../feed/random.ts'
import { randomFor } from './collection.ts'
import { patchFile } from './patch-file.ts'
import { provenance, publicKey } from './provenance.ts'
import { cycloneDx, firstParts, spdx } from './sbom.ts'
import type { ArtifactKind } from '../shapes/artifact.ts'
import type { ArtifactForm } from '../shapes/shape.ts'
import { type VexSubject, createKnown, cycloneDxVex, openVex } from './vex.ts'

/** A document by its kind and number; `key` is the public key that provenances are signed with. */
export interface DocumentName {
  kind: ArtifactKind | 'key'
  number: number
}

/** The documents of a seed, made when they are asked for and kept while there is room. */
export interface Documents {
  read(name: DocumentName): Representation
  /** Gives a document another content. */
  write(name: DocumentName, content: string): void
}

/** What documents follow from. */
interface DocumentOptions {
  seed: number
  /** SBOMs with a number below this are of `largeBytes`. */
  largeSboms: number
  largeBytes: number
  form: Pick<ArtifactForm, 'types' | 'gzipFiles'>
  /** As in `Origin`. */
  records: number
  /** The number of the SBOM that a VEX document is about. */
  sbomOf: (vex: number) => number
}

const CACHE_BYTES = 64 << 20
const GZIP_UP_TO = 1 << 20

/** Numbers of one kind are different documents; the same seed and number give the same bytes. */
export function createDocuments(options: DocumentOptions): Documents {
  const cache = new Map<string, Representation>()
  const written = new Map<string, Representation>()
  const known = createKnown(options)
  const keyOf = ({ kind, number }: DocumentName): string => `${kind}-${number}`
  let bytes = 0
  return {
    write(name, content) {
      written.set(keyOf(name), representationOf({ bytes: Buffer.from(content), type: JSON_TYPE }))
    },
    read(name) {
      const key = keyOf(name)
      const found = written.get(key) ?? cache.get(key)
      if (found !== undefined) return found
      const { bytes: content, type } = makeDocument({ ...options, known }, name)
      const isFile = options.form.gzipFiles === true && name.kind !== 'key'
      const made = isFile
        ? gzipFile(content)
        : representationOf({ bytes: content, type: typeOf(type, options.form.types) })
      cache.set(key, made)
      bytes += made.size
      for (const [oldest, { size }] of cache) {
        if (bytes <= CACHE_BYTES || oldest === key) break
        cache.delete(oldest)
        bytes -= size
      }
      return made
    },
  }
}

interface Made {
  type: string
  bytes: Buffer
}

interface Making extends DocumentOptions {
  known: ReturnType<typeof createKnown>
}

/** About one SBOM in ten is SPDX, one VEX in three CycloneDX. */
function makeDocument(options: Making, { kind, number }: DocumentName): Made {
  const { seed } = options
  const random = randomFor(seed, 'document', number)
  if (kind === 'sbom') {
    const size = drawSize(options, random, number)
    if (number % 10 === 4) return { type: 'application/spdx+json', bytes: spdx(random, size) }
    const version = number % 2 === 0 ? '1.5' : '1.6'
    const type = 'application/vnd.cyclonedx+json'
    return { type, bytes: cycloneDx(random, size, version) }
  }
  if (kind === 'vex') {
    const known = subjectsOf(options, number)
    if (number % 3 !== 1) return { type: JSON_TYPE, bytes: openVex(random, known) }
    return { type: 'application/vnd.cyclonedx+json', bytes: cycloneDxVex(random, known) }
  }
  if (kind === 'provenance') {
    return { type: 'application/vnd.dsse.envelope.v1+json', bytes: provenance(seed, random) }
  }
  if (kind === 'key') return { type: 'application/x-pem-file', bytes: publicKey(seed) }
  return { type: 'text/x-diff; charset=utf-8', bytes: patchFile(random) }
}

/** Bytes of an SBOM, drawn before anything else of it. */
function drawSize({ largeSboms, largeBytes }: DocumentOptions, random: Random, number: number): number {
  return number < largeSboms ? largeBytes : Math.round(5000 * 40 ** (random.next() ** 2))
}

/** Returns what a VEX document can be about: vulnerabilities of the first packages of its owner's SBOM. */
function subjectsOf(options: Making, vex: number): VexSubject[] {
  const sbom = options.sbomOf(vex)
  const random = randomFor(options.seed, 'document', sbom)
  const size = drawSize(options, random, sbom)
  return options.known(firstParts(random, size))
}

/** Media types of the same documents in another deployment. */
const OTHER_TYPES: Partial<Record<string, string>> = {
  'application/vnd.cyclonedx+json': 'application/vnd.cyclonedx+json; version=1.6',
  'application/spdx+json': 'Application/SPDX+JSON; charset="utf-8"',
  'application/vnd.dsse.envelope.v1+json': 'application/vnd.in-toto.provenance+dsse',
  'application/x-pem-file': 'application/pem-certificate-chain',
  'text/x-diff; charset=utf-8': 'text/x-patch',
  [JSON_TYPE]: 'application/json; charset=utf-8',
}

/** The Content-Type that a deployment gives to what is of this type. */
export function typeOf(type: string, types: ArtifactForm['types']): string {
  if (types === 'none') return 'application/octet-stream'
  return types === 'own' ? type : (OTHER_TYPES[type] ?? type)
}

function representationOf({ type, bytes }: Made): Representation {
  const plain = {
    type,
    size: bytes.length,
    etag: etagOf([bytes]),
    lastModified: NEWEST,
    ranges: true,
    chunks: () => [bytes],
  }
  if (bytes.length > GZIP_UP_TO) return plain
  let zipped: Buffer | undefined
  return { ...plain, gzip: () => (zipped ??= gzipSync(bytes)) }
}

function gzipFile(content: Buffer): Representation {
  const made = representationOf({ bytes: gzipSync(content), type: 'application/gzip' })
  const { gzip: _none, ...file } = made // it has no Content-Encoding
  return file
}

/** What documents may hang on. */
export type OwnerKind = 'tag' | 'package' | 'avr'

/** The numbers of an owner's documents, per kind; a kind that is not there was never made. */
type Artifacts = Partial<Record<ArtifactKind, readonly number[]>>

/** Which documents hang on what. Numbers count per kind of document; several owners may share one. */
export interface ArtifactStore {
  of(kind: OwnerKind, id: string): Artifacts
  put(kind: OwnerKind, id: string, artifacts: Artifacts): void
  /** The number of the SBOM that a VEX document is about: that which its owner had when the document was made. */
  sbomOf(vex: number): number
  /** Gives an owner new documents of one kind, as many as it had; what it shared stays with the others. */
  rotate(kind: OwnerKind, id: string, artifact: ArtifactKind): void
}

const AVRS = 10_000_000
const PACKAGES = 20_000_000
const ROTATED = 30_000_000
const PATCHES_EACH = 4

/** No documents yet. */
export function createArtifactStore(): ArtifactStore {
  const byOwner = new Map<string, Artifacts>()
  const keyOf = (kind: OwnerKind, id: string): string => `${kind}/${id}`
  const sboms = new Map<number, number>()
  let next = ROTATED
  return {
    of: (kind, id) => byOwner.get(keyOf(kind, id)) ?? {},
    put: (kind, id, artifacts) => void byOwner.set(keyOf(kind, id), artifacts),
    sbomOf: (vex) => sboms.get(vex) ?? (vex < AVRS ? tagSbom(vex) : vex),
    rotate(kind, id, artifact) {
      const before = byOwner.get(keyOf(kind, id)) ?? {}
      const made = (before[artifact] ?? [0]).map(() => next++)
      if (artifact === 'vex') for (const number of made) sboms.set(number, before.sbom?.[0] ?? number)
      byOwner.set(keyOf(kind, id), { ...before, [artifact]: made })
    },
  }
}

/** The i-th tag's documents: every fourth SBOM and every fifth VEX is that of the tag before. */
export function tagArtifacts(i: number, remediated: boolean): Artifacts {
  if (!remediated) return {}
  return {
    sbom: [tagSbom(i)],
    vex: [i % 5 === 4 ? i - 1 : i],
    provenance: [i],
  }
}

function tagSbom(i: number): number {
  return i % 4 === 3 ? i - 1 : i
}

/** The i-th AVR's documents. */
export function avrArtifacts(i: number): Artifacts {
  return { sbom: [AVRS + i], vex: [AVRS + i], provenance: [AVRS + i] }
}

/** The i-th package's documents: none to three patches, one provenance. */
export function packageArtifacts(i: number): Artifacts {
  const patches = Array.from({ length: i % PATCHES_EACH }, (_, n) => i * PATCHES_EACH + n)
  return { patches, provenance: [PACKAGES + i] }
}
