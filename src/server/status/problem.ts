/** What is wrong: the page, the terminal, exit codes and metrics go by it. */
export type ProblemCode =
  | 'storage' // the disk is full or fails, or what is stored is damaged
  | 'unreachable' // the service
  | 'unauthorized' // its credential is refused
  | 'run_failed' // for another reason
  | 'age_unknown' // the data is dated later than this machine's clock
  | 'future' // the newest snapshot was stored at a time that is still to come
  | 'old' // older than its policy
  | 'empty' // nothing is mirrored yet
  | 'first_run' // of a source is in progress
  | 'quarantined'
  | 'partial'
  | 'doubtful'
  | 'rejected'
  | 'unsynced'
  | 'scope_changed'
  | 'fleet'
  | 'relay'
  | 'edge'
  | 'webhooks'
  | 'outbox'
  | 'inbox'
  | 'views'
  | 'findings'
  | 'damaged' // the last verification found what it could not heal
  | 'signatures' // of artifacts that are published and not verified

/** One cause, however much fails for it. */
export interface MirrorProblem {
  readonly code: ProblemCode
  readonly level: 'failed' | 'warning'
  /** Sources, a target, or a part of the mirror. */
  readonly subject: string
  /** What is wrong, in a few words. */
  readonly text: string
  /** More about it; null: nothing is known. */
  readonly detail: string | null
  /** When it began, ISO 8601 UTC; null: unknown. */
  readonly since: string | null
  /** What it means for those who read from the mirror; null: nothing. */
  readonly effect: string | null
  /** Commands that show more, or help. */
  readonly advice: readonly string[]
  /** Whether the mirror is not ready for it, as `/-/ready` says. */
  readonly unready: boolean
  /** The run that it is about, which has a page of its own. */
  readonly run?: number
}

/** A problem as the report has it: whether the mirror is ready has a page of its own. */
export type ReportedProblem = Omit<MirrorProblem, 'unready'>

/** Returns a problem as the report has it. */
export function reportedProblem({ unready: _, ...reported }: MirrorProblem): ReportedProblem {
  return reported
}

/** Creates a problem; what is not given is not known. */
export function problem(
  code: ProblemCode,
  level: MirrorProblem['level'],
  subject: string,
  text: string,
  more: Partial<Pick<MirrorProblem, 'detail' | 'since' | 'effect' | 'advice' | 'unready' | 'run'>> = {},
): MirrorProblem {
  return {
    code,
    level,
    subject,
    text,
    detail: null,
    since: null,
    effect: null,
    advice: [],
    unready: false,
    ...more,
  }
}
