import type { SourceName } from '../../base/domain/sources.ts'
import type { ProblemCode, ReportedProblem } from '../../base/reports/problems.ts'

/** A problem, and whether the mirror is not ready for it, as `/-/ready` says. */
export interface MirrorProblem extends ReportedProblem {
  readonly unready: boolean
  /** The sources that fail or get older for it, of which older data is served; absent: it is not about what is served. */
  readonly sources?: readonly SourceName[]
}

/** Returns a problem as the report has it. */
export function reportedProblem({ unready: _, sources: __, ...reported }: MirrorProblem): ReportedProblem {
  return reported
}

/** Creates a problem; what is not given is not known. */
export function problem(
  code: ProblemCode,
  level: MirrorProblem['level'],
  subject: string,
  text: string,
  more: Partial<Pick<MirrorProblem, 'detail' | 'since' | 'effect' | 'advice' | 'unready' | 'run' | 'sources'>> = {},
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
