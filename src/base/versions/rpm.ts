import { compareDigits, compareText, createOrder } from './order.ts'

interface RpmVersion {
  /** Null: it is not known, and so is not compared. */
  readonly epoch: string | null
  readonly version: string
  /** Null: there is none, which precedes any. */
  readonly release: string | null
}

/**
 * Red Hat, SUSE, AlmaLinux, Rocky Linux and the others that use rpm: epoch, version and release, each by rpmvercmp. Ours,
 * for the libraries that there are carry a whole RPM reader.
 */
export const rpmOrder = createOrder<RpmVersion>({
  read(text) {
    // rpm's own word for no epoch is `(none)`
    const found = /^(?:(?:(\d+|\?)|\(none\)):)?([^\s:-][^\s-]*)(?:-([^\s-]*))?$/.exec(text)
    const [, epoch = '', version, release = null] = found ?? []
    if (version === undefined) return null
    return { epoch: epoch === '?' ? null : epoch, version, release }
  },
  compare: (one, other) =>
    compareEpochs(one.epoch, other.epoch) ||
    comparePieces(one.version, other.version) ||
    Number(one.release !== null) - Number(other.release !== null) ||
    comparePieces(one.release ?? '', other.release ?? ''),
})

function compareEpochs(one: string | null, other: string | null): number {
  return one === null || other === null ? 0 : compareDigits(one, other)
}

/** Returns a version whose epoch is not known, as the order reads it: it is compared by what stands behind the epoch alone. */
export function anyEpoch(version: string): string {
  return `?:${version}`
}

/** Returns the version without an epoch of one whose epoch is not known; null for any other. */
export function withoutEpoch(version: string): string | null {
  return version.startsWith('?:') ? version.slice(2) : null
}

/** Pieces of digits, of letters, `~` and `^`; all else only parts them. */
function comparePieces(one: string, other: string): number {
  if (one === other) return 0
  const a = one.match(/\d+|[A-Za-z]+|~|\^/g) ?? []
  const b = other.match(/\d+|[A-Za-z]+|~|\^/g) ?? []
  for (let i = 0; i < Math.max(a.length, b.length); i++) {
    const difference = comparePiece(a[i], b[i])
    if (difference !== 0) return difference
  }
  return 0
}

/** `~` precedes the end of a version, `^` directly follows it, then letters, then numbers. */
function comparePiece(one: string | undefined, other: string | undefined): number {
  const difference = rankOf(one) - rankOf(other)
  if (difference !== 0) return difference
  if (one === undefined || other === undefined) return 0
  return /^\d/.test(one) ? compareDigits(one, other) : compareText(one, other)
}

function rankOf(piece: string | undefined): number {
  if (piece === '~') return -1
  if (piece === undefined) return 0
  if (piece === '^') return 1
  return /^\d/.test(piece) ? 3 : 2
}
