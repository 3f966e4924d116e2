import { compareDigits, compareText, createOrder } from './order.ts'

interface RpmVersion {
  readonly epoch: string
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
    const found = /^(?:(\d+):)?([^\s:-][^\s-]*)(?:-([^\s-]*))?$/.exec(text)
    if (found?.[2] === undefined) return null
    return { epoch: found[1] ?? '', version: found[2], release: found[3] ?? null }
  },
  compare: (one, other) =>
    compareDigits(one.epoch, other.epoch) ||
    comparePieces(one.version, other.version) ||
    Number(one.release !== null) - Number(other.release !== null) ||
    comparePieces(one.release ?? '', other.release ?? ''),
})

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
