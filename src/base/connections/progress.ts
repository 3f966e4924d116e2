/** How much of a body has come, or of an answer has gone, and how long that lets a client be. */
export interface ClientProgress {
  /** Returns the bytes that moved since some time in the past. */
  readonly moved: () => number
  readonly kind: ProgressKind
  readonly beganAt: number
  /** What had moved at the last look, and when that was. */
  seen: number
  seenAt: number
  movedAt: number
  /** Until then the client is not slow: what moved pays for it. */
  paidUntil: number
}

/** What is looked at: a body that comes, or an answer that goes. */
type ProgressKind = 'body' | 'answer'

/** Bytes a second that a client sends or takes at least, unless it is slow: a quarter of a megabit. */
export const SLOW_BYTES = 32 * 1024
/** What moves this soon pays for nothing: the system's buffers take megabytes of an answer that no client reads, milliseconds. */
const BURST_MS = 2_000
/** A client is not slow for this long from the beginning on, milliseconds. */
const FREE_MS: Readonly<Record<ProgressKind, number>> = { body: 2_000, answer: 10_000 }
/**
 * Most time that what moved pays for, milliseconds. The system takes more of an answer only when a third of its buffer is free: of
 * a client that reads one megabit a second that is a step of 1.4 MB every 12 seconds (measured, Linux). A body comes evenly.
 */
const PAID_MS: Readonly<Record<ProgressKind, number>> = { body: 5_000, answer: 30_000 }

/** Begins to look at what moves for a client. */
export function beginProgress(kind: ProgressKind, moved: () => number): ClientProgress {
  const now = performance.now()
  const times = { beganAt: now, seenAt: now, movedAt: now }
  return { ...times, kind, moved, seen: moved(), paidUntil: now + FREE_MS[kind] }
}

/** Looks how much has moved since the last look. */
export function updateProgress(progress: ClientProgress, now: number): void {
  const more = progress.moved() - progress.seen
  if (more !== 0) progress.movedAt = now
  if (now - progress.beganAt > BURST_MS || progress.kind === 'body') {
    const from = Math.max(progress.paidUntil, progress.seenAt)
    const paid = from + (more * 1000) / SLOW_BYTES
    progress.paidUntil = Math.max(progress.paidUntil, Math.min(paid, now + PAID_MS[progress.kind]))
  }
  progress.seen += more
  progress.seenAt = now
}

/** Reports whether less has moved than a client sends or takes that is not slow. */
export function isSlow({ paidUntil }: ClientProgress, now: number): boolean {
  return now >= paidUntil
}
