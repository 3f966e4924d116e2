import type { MirrorProblem } from '../../../server/status/problem.ts'
import { problemsOf } from '../../../server/status/problems.ts'
import type { Status } from '../../../base/reports/status.ts'
import type { Config } from '../../../config/schema.ts'
import { timeOf } from '../../output.ts'

/** Returns the lines on everything that is wrong with the mirror: one problem for each cause, with what helps. */
export function describeProblems(status: Status, config: Config, now = Date.now()): string[] {
  return problemsOf(status, config, now).flatMap(linesOf)
}

/** A problem and its start on one line; below it more about it, its effect and commands. */
function linesOf(problem: MirrorProblem): string[] {
  const { level, subject, text, detail, since, effect, advice } = problem
  const word = level === 'failed' ? 'PROBLEM' : 'WARNING'
  const begun = since === null ? '' : `, since ${timeOf(Date.parse(since))}`
  return [
    `${word}: ${subject}: ${text}${begun}`,
    ...(detail === null ? [] : [`  ${detail}`]),
    ...(effect === null ? [] : [`  ${withTimes(effect)}`]),
    ...(advice.length === 0 ? [] : [`  ${advice.join(' | ')}`]),
  ]
}

/** The dates in a text as the table has them. */
function withTimes(text: string): string {
  return text.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, (date) => timeOf(Date.parse(date)))
}
