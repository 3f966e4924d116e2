import { MirrorError, messageOf } from '../../base/errors.ts'

/** `skipped`: it does not apply here, or a check that it depends on failed. */
type CheckState = 'ok' | 'warn' | 'fail' | 'skipped'

/** What a check found: in one or two sentences without secrets, and what to do about it; null: nothing. */
export interface Finding {
  readonly state: CheckState
  readonly found: string
  readonly action: string | null
}

/** A check of the mirror. `needs` names the checks without which its result means nothing. */
export interface DoctorCheck {
  readonly name: string
  /** What it looks at, in a few words. */
  readonly title: string
  readonly needs: readonly string[]
  readonly run: () => Finding | Promise<Finding>
}

/** The result of a check, as `patchmirror doctor --json` prints it. */
export interface CheckResult extends Finding {
  readonly name: string
  readonly title: string
}

/** Makes the finding that all is well. */
export function fine(found: string): Finding {
  return { state: 'ok', found, action: null }
}

/** Makes the finding that the check does not apply here. */
export function skipped(found: string): Finding {
  return { state: 'skipped', found, action: null }
}

/** Makes the finding that something will fail, or may have been overlooked. */
export function warning(found: string, action: string): Finding {
  return { state: 'warn', found, action }
}

/** Makes the finding that something does not work. */
export function failure(found: string, action: string): Finding {
  return { state: 'fail', found, action }
}

/**
 * Runs the checks in their order, each within `limitMs`. A check that needs one that failed is skipped, so that one cause
 * is named once. A check that throws has failed.
 */
export async function runChecks(checks: readonly DoctorCheck[], limitMs: number): Promise<CheckResult[]> {
  const results: CheckResult[] = []
  const blocked = new Map<string, string>() // what was not found to be in order, by the check that failed
  for (const { name, title, needs, run } of checks) {
    const cause = needs.map((one) => blocked.get(one)).find((one) => one !== undefined)
    const finding =
      cause === undefined ? await withinLimit(run, limitMs) : skipped(`not checked, because "${cause}" failed`)
    if (cause !== undefined) blocked.set(name, cause)
    else if (finding.state === 'fail') blocked.set(name, name)
    results.push({ name, title, ...finding })
  }
  return results
}

async function withinLimit(run: DoctorCheck['run'], limitMs: number): Promise<Finding> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<Finding>((resolve) => {
    const seconds = Math.ceil(limitMs / 1000)
    const action = 'Something on the way answers too slowly, or not at all: check it, then run the doctor again.'
    timer = setTimeout(() => resolve(failure(`no result within ${seconds} s`, action)), limitMs)
  })
  try {
    return await Promise.race([Promise.resolve().then(run), late])
  } catch (error) {
    const action =
      error instanceof MirrorError
        ? 'The message says what to change.'
        : 'This is a defect of Patchmirror: report it with the support archive ("patchmirror doctor --save FILE.zip").'
    return failure(messageOf(error), action)
  } finally {
    clearTimeout(timer)
  }
}

/** Returns the exit code of these results: 1 when a check failed, 3 when one only warns, otherwise 0. */
export function checksExitCode(results: readonly CheckResult[]): number {
  if (results.some(({ state }) => state === 'fail')) return 1
  return results.some(({ state }) => state === 'warn') ? 3 : 0
}

/** Returns the worst of several findings, with the texts of all that are as bad; `none` when there are none. */
export function worst(findings: readonly Finding[], none: Finding): Finding {
  for (const state of ['fail', 'warn', 'ok', 'skipped'] as const) {
    const same = findings.filter((one) => one.state === state)
    if (same.length === 0) continue
    const actions = [...new Set(same.flatMap(({ action }) => action ?? []))]
    return {
      state,
      found: same.map(({ found }) => found).join('; '),
      action: actions.length === 0 ? null : actions.join(' '),
    }
  }
  return none
}
