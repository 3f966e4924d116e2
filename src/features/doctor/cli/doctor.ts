import { type CheckResult, checksExitCode } from '../check.ts'
import { examineMirror } from '../doctor.ts'
import { visible } from '../../../cli/output.ts'
import { type GlobalOptions, print } from '../../../cli/context.ts'
import { doctorWorld } from './world.ts'

/** `patchmirror doctor`: exits with 1 when a check failed, 3 when one only warns, else 0. */
export async function mirrorDoctorCommand(options: GlobalOptions & { json?: boolean }): Promise<number> {
  const results = await examineMirror(doctorWorld(options))
  if (options.json === true) print(JSON.stringify({ checks: results }, null, 2))
  else for (const line of describeResults(results)) print(line)
  return checksExitCode(results)
}

/** Returns a text of one or more lines, the first behind `label` and the others below it. */
function described(label: string, text: string): string[] {
  const [first = '', ...others] = text.split('\n')
  const below = ' '.repeat(label.length)
  return [`${label}${visible(first)}`, ...others.map((line) => `${below}${visible(line).trim()}`)]
}

/** One line for each check, below it what to do; at the end how many are in which state. */
function describeResults(results: readonly CheckResult[]): string[] {
  const lines = results.flatMap(({ state, name, found, action }) => [
    ...described(`${state.padEnd(7)}  ${name.padEnd(15)}  `, found),
    ...(action === null ? [] : described(`${' '.repeat(26)}→ `, action)),
  ])
  const counts = (['fail', 'warn', 'ok', 'skipped'] as const).map((state) => {
    const count = results.filter((one) => one.state === state).length
    return `${count} ${state}`
  })
  return [...lines, '', counts.join(', ')]
}
