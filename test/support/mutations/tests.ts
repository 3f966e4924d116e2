import { spawn } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'

/** What vitest writes with `--reporter=json`, as far as it is used. */
interface Report {
  readonly testResults: readonly {
    readonly name: string
    readonly message: string
    readonly assertionResults: readonly {
      readonly status: string
      readonly fullName: string
      readonly failureMessages: readonly string[]
    }[]
  }[]
}

/** What the tests said. */
export interface Outcome {
  /** Number of tests that passed. */
  readonly passed: number
  /** Tests in which an assertion failed, with their files. */
  readonly failed: readonly { readonly file: string; readonly test: string }[]
  /** What went wrong otherwise: a file that cannot be loaded, an error in place of a failed assertion, a run without an end. */
  readonly broken: readonly string[]
}

/** Longest time of one run, milliseconds: far beyond what the slowest file of the list takes. */
const HANGS_AFTER_MS = 15 * 60_000

/** How a failed assertion is reported, by what failed. */
const FAILED_ASSERTIONS: readonly RegExp[] = [
  /AssertionError/,
  /^Error: promise (?:resolved|rejected) .* instead of /s,
  /^TypeError: \.to\w+\(\) expects/, // a value of another type
  /Property failed after/, // a generated case
]

/** Configuration of each suite. */
const CONFIGS = { fast: 'vitest.config.ts', long: 'vitest.long.config.ts' } as const

/** Runs test files or folders by the configuration of a suite, in a copy of the checkout. */
export async function runTests(
  folder: string,
  suite: keyof typeof CONFIGS,
  paths: readonly string[],
): Promise<Outcome> {
  const file = join(folder, 'report.json')
  rmSync(file, { force: true })
  const vitest = join('node_modules', 'vitest', 'vitest.mjs')
  const to = ['--reporter=json', '--outputFile=report.json']
  const args = [vitest, 'run', '--config', CONFIGS[suite], ...to, ...paths]
  const child = spawn(process.execPath, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  const stop = (): boolean => child.kill('SIGTERM')
  process.once('exit', stop)
  let said = ''
  const hear = (chunk: Buffer): void => void (said = (said + chunk.toString()).slice(-2000))
  child.stdout.on('data', hear)
  child.stderr.on('data', hear)
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const watch = new AbortController()
  const late = pause(HANGS_AFTER_MS, undefined, { signal: watch.signal }).then(
    () => stop(),
    () => false,
  )
  await ended
  watch.abort()
  process.off('exit', stop)
  if (await late) return broken(`${paths.join(' ')}: no end within ${HANGS_AFTER_MS / 60_000} minutes`)
  if (!existsSync(file)) return broken(`${paths.join(' ')}: ${said.trim().split('\n').at(-1) ?? ''}`)
  return readReport(folder, JSON.parse(readFileSync(file, 'utf8')) as Report)
}

function broken(why: string): Outcome {
  return { passed: 0, failed: [], broken: [why] }
}

/** Tells failed assertions from whatever else can fail. */
function readReport(folder: string, { testResults }: Report): Outcome {
  const failed: Outcome['failed'][number][] = []
  const errors: string[] = []
  let passed = 0
  for (const { name, message, assertionResults } of testResults) {
    const file = name.replace(`${folder}/`, '')
    if (message !== '') errors.push(`${file}: ${firstLine(message)}`)
    for (const { status, fullName, failureMessages } of assertionResults) {
      if (status === 'passed') passed++
      if (status !== 'failed') continue
      if (failureMessages.some(isAssertion)) failed.push({ file, test: fullName })
      else errors.push(`${file}: ${fullName}: ${firstLine(failureMessages[0] ?? '')}`)
    }
  }
  return { passed, failed, broken: errors }
}

function isAssertion(text: string): boolean {
  return FAILED_ASSERTIONS.some((one) => one.test(text))
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? ''
}
