import { COUNT, FLAG, MAYBE_DATE, MAYBE_INTEGER, MAYBE_TEXT, type TypeOf, object, oneOf } from '../schema.ts'

/*
 * Describes what is made of the mirrored data: views for scanners, and findings of tags. Times in ISO 8601 UTC.
 */

/** One kind of views. */
export const VIEWS = object({
  kind: oneOf(['osv', 'vex']),
  /**
   * `current`: made from the served snapshot; `behind`: from an earlier one, or `unread` of it; `none`: not made yet;
   * `unreadable`: made by another version of the program, or damaged, and not served until they are made again.
   */
  state: oneOf(['current', 'behind', 'none', 'unreadable']),
  /** The snapshot that they were made from; null where there are none. */
  snapshot: MAYBE_TEXT,
  madeAt: MAYBE_DATE,
  making: FLAG,
  /** The last build failed; the log has the reason. */
  failing: FLAG,
  /** Number of records with an invalid ecosystem or package name; null where they are not counted. */
  odd: MAYBE_INTEGER,
  /** Number of VEX documents that are damaged, and therefore missing in them; null where they have none. */
  unread: MAYBE_INTEGER,
})
export type ViewsStatus = TypeOf<typeof VIEWS>

/** How far the SBOMs of the mirrored tags are judged. */
export const TAG_FINDINGS = object({
  /** `current`: by what is served; `behind`: by an earlier state; `none`: not yet. */
  state: oneOf(['current', 'behind', 'none']),
  tags: COUNT,
  /** Of them, those whose SBOM could be read. */
  judged: COUNT,
  /** The snapshots that they are judged by; null where they are not. */
  osv: MAYBE_TEXT,
  catalog: MAYBE_TEXT,
  judgedAt: MAYBE_DATE,
  judging: FLAG,
  /** The last try failed; the log has the reason. */
  failing: FLAG,
})
export type TagFindingsStatus = TypeOf<typeof TAG_FINDINGS>
