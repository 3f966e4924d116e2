export type Kind = 'sorted' | 'shuffled' | 'tickets'

/** A first sync of `count` items into an empty folder: milliseconds, bytes. */
export interface Point {
  readonly kind: Kind
  readonly count: number
  readonly ms: number
  readonly peak: number
  readonly disk: number
}
