import { COUNT, MAYBE_DATE, MAYBE_TEXT, TEXT, TEXTS, type TypeOf, object, oneOf, optional } from '../schema.ts'

/** What is wrong: the page, the terminal, exit codes and metrics go by it. */
const PROBLEM_CODE = oneOf([
  'storage', // the disk is full or fails, or what is stored is damaged
  'unreachable', // the service
  'unauthorized', // its credential is refused
  'no_credential', // the package catalog wants one, and none is sent
  'run_failed', // for another reason
  'age_unknown', // the data is dated later than this machine's clock
  'future', // the newest snapshot was stored at a time that is still to come
  'old', // older than its policy
  'empty', // nothing is mirrored yet
  'first_run', // of a source is in progress
  'quarantined',
  'partial',
  'doubtful',
  'rejected',
  'unsynced',
  'scope_changed',
  'fleet',
  'relay',
  'edge',
  'webhooks',
  'outbox',
  'inbox',
  'registry',
  'views',
  'findings',
  'damaged', // the last verification found what it could not heal
  'secret_file', // of a setting, which cannot be used any more
  'signatures', // of artifacts that are published and not verified
])
export type ProblemCode = TypeOf<typeof PROBLEM_CODE>

/** One cause, however much fails for it. */
export const REPORTED_PROBLEM = object({
  code: PROBLEM_CODE,
  level: oneOf(['failed', 'warning']),
  /** Sources, a target, or a part of the mirror. */
  subject: TEXT,
  /** What is wrong, in a few words. */
  text: TEXT,
  /** More about it; null: nothing is known. */
  detail: MAYBE_TEXT,
  /** When it began, ISO 8601 UTC; null: unknown. */
  since: MAYBE_DATE,
  /** What it means for those who read from the mirror; null: nothing. */
  effect: MAYBE_TEXT,
  /** Commands that show more, or help. */
  advice: TEXTS,
  /** The run that it is about, which has a page of its own. */
  run: optional(COUNT),
})
export type ReportedProblem = TypeOf<typeof REPORTED_PROBLEM>
