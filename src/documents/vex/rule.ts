/*
 * The rule by which a statement of VEX counts, for everything that asks: match, the findings of tags, the VEX repository and the
 * VEX of one image.
 *
 * A statement counts where its document counts: a tag's document for the image of this tag, any document for an image that it
 * names. Of the statements that count for an image, the newest about the vulnerability and the package version decides; of equally
 * old ones, one that rules nothing out. Where none counts, the newest statement of the other documents decides that names only the
 * component. It decides nothing while the current statement of any of these tags leaves the vulnerability open in that package
 * version, in whatever image, nor while a document of the image's own tag is damaged or could not be fetched. Without a date, what rules
 * out counts as the oldest, what rules nothing out as the newest. What rules out and is dated more than a day ahead counts as if it had
 * no date. In an attestation it counts for the digests alone that the attestation is about.
 */

/**
 * What a statement names: the image that an SBOM describes, with or without a component; only the component; or the component in
 * another image, which says nothing about this one.
 */
export type Form = 'image' | 'component' | 'elsewhere'

/** A statement about a vulnerability in a package version. */
export interface Said {
  /** As `instantOf`. */
  readonly at: string
  /** Whether it does not rule the vulnerability out. */
  readonly isOpen: boolean
  readonly form: Form
  /** The tags whose document it is in; `NO_TAG` alone for a document of none. */
  readonly tags: readonly string[]
}

/** Stands for the documents that belong to no tag. */
export const NO_TAG = ''

/** The statement that counts; null as its value: it leaves the vulnerability open. */
interface Verdict<One> {
  readonly at: string
  readonly ruledOutBy: One | null
}

/** Decides about a vulnerability in a package version. */
export interface Ruling<One extends Said> {
  add(one: One): void
  /** Returns the verdict; null where no statement counts. `isOwnKnown`: whether all that the documents of its own tag say is known. */
  decide(isOwnKnown?: boolean): Verdict<One> | null
}

/** Creates what decides for an image. `own`: the tag that it is of; null where this is not known. */
export function createRuling<One extends Said>(own: string | null): Ruling<One> {
  const current = new Map<string, Pick<Said, 'at' | 'isOpen'>>()
  let counting: One | null = null
  let other: One | null = null
  return {
    add(one) {
      const isOwn = own !== null && one.tags.includes(own)
      const counts = one.form === 'image' || (isOwn && one.form === 'component')
      if (counts && isLater(one, counting)) counting = one
      for (const tag of one.tags)
        if (isLater(one, current.get(tag))) current.set(tag, { at: one.at, isOpen: one.isOpen })
      if (one.form === 'component' && !one.isOpen && isLater(one, other)) other = one
    },
    decide(isOwnKnown = true) {
      if (counting !== null) return verdictOf(counting)
      const open = [...current.values()].find(({ isOpen }) => isOpen)
      if (open !== undefined) return { at: open.at, ruledOutBy: null }
      return other === null || !isOwnKnown ? null : verdictOf(other)
    },
  }
}

function verdictOf<One extends Said>(one: One): Verdict<One> {
  return { at: one.at, ruledOutBy: one.isOpen ? null : one }
}

/**
 * Whether a statement counts before another one: a newer one does, and of equally old ones one that does not rule out. One that rules
 * nothing out and has no date may be the newest.
 */
export function isLater(
  one: Pick<Said, 'at' | 'isOpen'>,
  before: Pick<Said, 'at' | 'isOpen'> | null | undefined,
): boolean {
  if (before === null || before === undefined) return true
  const own = placeInTime(one)
  const other = placeInTime(before)
  return own === other ? !before.isOpen : own > other
}

function placeInTime({ at, isOpen }: Pick<Said, 'at' | 'isOpen'>): string {
  return isOpen && at === '' ? LAST : at
}

/** Behind each date, as `instantOf` has them. */
const LAST = '~'
