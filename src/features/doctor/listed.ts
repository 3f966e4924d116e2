import type { Config } from '../../config/schema.ts'
import type { ProblemCode } from '../../base/reports/problems.ts'
import type { Status } from '../../base/reports/status.ts'
import type { MirrorProblem } from '../../server/status/problem.ts'
import { problemsOf } from '../../server/status/problems.ts'
import { type Finding, failure, warning } from './check.ts'
import type { DoctorWorld } from './world.ts'

/** The text and the advice of a finding. */
type Said = readonly [found: string, action: string]

/** Returns what the list of problems has of a part, as findings in the words of a check: the list says how severe each is. */
export function listedProblems(
  { now }: Pick<DoctorWorld, 'now'>,
  config: Config,
  status: Status | null,
  codes: readonly ProblemCode[],
  say: (problem: MirrorProblem) => Said,
): Finding[] {
  if (status === null) return []
  const problems = problemsOf(status, config, now()).filter(({ code }) => codes.includes(code))
  return problems.map((problem) => {
    const make = problem.level === 'failed' ? failure : warning
    return make(...say(problem))
  })
}
