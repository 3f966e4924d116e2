import type { ArtifactKind } from './shapes/artifact.ts'

/** What documents may hang on. */
export type OwnerKind = 'tag' | 'package' | 'avr'

/** The numbers of an owner's documents, per kind; a kind that is not there was never made. */
export type Holding = Partial<Record<ArtifactKind, readonly number[]>>

/** Which documents hang on what. Numbers count per kind of document; several owners may share one. */
export interface Holdings {
  of(kind: OwnerKind, id: string): Holding
  put(kind: OwnerKind, id: string, holding: Holding): void
  /** Gives an owner new documents of one kind, as many as it had; what it shared stays with the others. */
  rotate(kind: OwnerKind, id: string, artifact: ArtifactKind): void
}

const AVRS = 10_000_000
const PACKAGES = 20_000_000
const ROTATED = 30_000_000
const PATCHES_EACH = 4

/** No documents yet. */
export function createHoldings(): Holdings {
  const held = new Map<string, Holding>()
  const keyOf = (kind: OwnerKind, id: string): string => `${kind}/${id}`
  let next = ROTATED
  return {
    of: (kind, id) => held.get(keyOf(kind, id)) ?? {},
    put: (kind, id, holding) => void held.set(keyOf(kind, id), holding),
    rotate(kind, id, artifact) {
      const before = held.get(keyOf(kind, id)) ?? {}
      const made = (before[artifact] ?? [0]).map(() => next++)
      held.set(keyOf(kind, id), { ...before, [artifact]: made })
    },
  }
}

/** The i-th tag's documents: every fourth SBOM and every fifth VEX is that of the tag before. */
export function tagHolding(i: number, remediated: boolean): Holding {
  if (!remediated) return {}
  return {
    sbom: [i % 4 === 3 ? i - 1 : i],
    vex: [i % 5 === 4 ? i - 1 : i],
    provenance: [i],
  }
}

/** The i-th AVR's documents. */
export function avrHolding(i: number): Holding {
  return { sbom: [AVRS + i], vex: [AVRS + i], provenance: [AVRS + i] }
}

/** The i-th package's documents: none to three patches, one provenance. */
export function packageHolding(i: number): Holding {
  const patches = Array.from({ length: i % PATCHES_EACH }, (_, n) => i * PATCHES_EACH + n)
  return { patches, provenance: [PACKAGES + i] }
}
