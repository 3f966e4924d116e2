import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { copyCheckout, mutate, whyNot } from './copy.ts'
import { MUTATIONS } from './list.ts'
import type { Mutation } from './mutation.ts'
import { type Outcome, runTests } from './tests.ts'

/**
 * `npm run test:mutations [-- WORDS…]`: puts each defect of the list into a copy of the checkout, and runs the tests that
 * should find it. WORDS select the defects whose name, or whose file, contains one of them. Exits 1 when a defect is not found.
 */
const words = process.argv.slice(2)
const chosen = MUTATIONS.filter(
  ({ name, file }) => words.length === 0 || words.some((word) => name.includes(word) || file.includes(word)),
)

/** Puts one defect into the copy, runs its tests, and takes it out again. */
async function runOne(folder: string, mutation: Mutation): Promise<Outcome> {
  const path = join(folder, mutation.file)
  const sound = readFileSync(path, 'utf8')
  writeFileSync(path, mutate(sound, mutation))
  try {
    return await runTests(folder, mutation.suite ?? 'fast', mutation.tests)
  } finally {
    writeFileSync(path, sound)
  }
}

/** Returns the result in one line: which tests found the defect, or what happened instead. */
function describe({ failed, broken }: Outcome): string {
  const files = Map.groupBy(failed, ({ file }) => file)
  const found = [...files].map(([file, { length }]) => {
    const tests = length === 1 ? 'test' : 'tests'
    return `${file} (${length} ${tests})`
  })
  if (found.length > 0) return `found by ${found.join(', ')}`
  const other = broken.slice(0, 3).join('; ')
  return other === '' ? 'NOT FOUND' : `NOT FOUND by an assertion: ${other}`
}

/** Sees the tests pass without a defect, each file once; otherwise a failure would prove nothing. */
async function areSound(folder: string): Promise<boolean> {
  for (const [suite, ones] of Map.groupBy(chosen, (one) => one.suite ?? 'fast')) {
    const tests = [...new Set(ones.flatMap((one) => one.tests))]
    const { passed, failed, broken } = await runTests(folder, suite, tests)
    const faults = [...failed.map(({ file, test }) => `${file}: ${test}`), ...broken]
    if (passed === 0) faults.push(`no test ran: ${tests.join(', ')}`)
    if (faults.length > 0) {
      say(`without a defect, these tests of the ${suite} suite fail:\n${faults.join('\n')}`)
      return false
    }
    say(`without a defect, ${passed} tests of the ${suite} suite pass`)
  }
  return true
}

async function main(folder: string): Promise<void> {
  process.exitCode = 1
  if (!(await areSound(folder))) return
  let found = 0
  for (const mutation of chosen) {
    const begun = performance.now()
    const outcome = await runOne(folder, mutation)
    if (outcome.failed.length > 0) found++
    const seconds = ((performance.now() - begun) / 1000).toFixed(0)
    say(`${mutation.name}: ${describe(outcome)}, ${seconds} s`)
  }
  say(`${found} of ${chosen.length} defects found`)
  if (found === chosen.length) process.exitCode = 0
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

const faults = chosen.flatMap((one) => whyNot(one) ?? [])
if (chosen.length === 0) faults.push(`no defect of the list has one of these words: ${words.join(', ')}`)
if (faults.length > 0) {
  say(faults.join('\n'))
  process.exitCode = 1
} else {
  const checkout = copyCheckout()
  // A signal ends the run; the copy goes in any case.
  process.once('exit', () => checkout.remove())
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  await main(checkout.folder)
}
