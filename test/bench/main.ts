/**
 * `npm run bench`: measures the daemon as it is built against loops and servers in the same runs, prints tables and writes
 * them to docs/benchmarks.md. Loopback only; ends by itself.
 */
import { parseArgs } from 'node:util'
import { GROUPS } from './groups.ts'
import type { Group, Options } from './report/group.ts'
import { sectionText, takenNow, writePage } from './report/page.ts'
import { ALLOCATOR } from './world/allocator.ts'
import { ROOT } from './world/processes.ts'

const PAGE = `${ROOT}docs/benchmarks.md`
/** The number of records that `--records` is compared with: other sizes are reduced in the same proportion. */
const FULL = 100_000
/** Measurements of reduced sizes take this share of their time. */
const SHORT = 0.2
const NAMES = GROUPS.map(({ name }) => name)

const USAGE = `usage: npm run bench -- [options]

  --only NAME[,NAME]   measure these groups; the others keep their lines on the page
                       ${NAMES.join(', ')}
  --list               print the lines of these groups and their goals, measure nothing
  --runs N             how often each group is measured (3)
  --records N          reduced sizes, for trying: N records where there are ${FULL}, everything else in proportion
  --quick              one run with a tenth of everything
  --no-write           print only; reduced sizes are never written
`

function readArguments() {
  const { values } = parseArgs({
    options: {
      only: { type: 'string' },
      runs: { type: 'string' },
      records: { type: 'string' },
      list: { type: 'boolean', default: false },
      quick: { type: 'boolean', default: false },
      'no-write': { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  const { only, list, help, quick } = values
  const { runs = quick ? '1' : '3', records = String(quick ? FULL / 10 : FULL) } = values
  const share = readNumber('--records', records) / FULL
  const options = optionsOf(readNumber('--runs', runs), share)
  const isWritten = !values['no-write'] && share === 1
  return { groups: groupsOf(only), options, isWritten, list, help }
}

function groupsOf(only: string | undefined): readonly Group[] {
  if (only === undefined) return GROUPS
  return only.split(',').map((name) => {
    const group = GROUPS.find((one) => one.name === name)
    if (group === undefined) throw new Error(`--only takes some of ${NAMES.join(', ')}, not ${JSON.stringify(name)}`)
    return group
  })
}

function optionsOf(runs: number, share: number): Options {
  return {
    runs,
    size: (full) => Math.max(1, Math.round(full * share)),
    seconds: (full) => (share < 1 ? Math.max(1, full * SHORT) : full),
  }
}

function readNumber(name: string, text: string): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value > 0) return value
  throw new Error(`${name} must be a whole number above 0, not ${text}`)
}

/** Measures the groups one after the other, and writes each as soon as it is done: a failure costs one group only. */
async function measureAll(groups: readonly Group[], options: Options, isWritten: boolean): Promise<void> {
  for (const group of groups) {
    try {
      const section = await group.measure(options)
      process.stdout.write(`${sectionText(section)}\n\n`)
      if (isWritten) writePage(PAGE, section, takenNow(options.runs), NAMES)
    } catch (error) {
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
      process.stderr.write(`${group.name} failed: ${text}\n`)
      process.exitCode = 1
    }
  }
}

const { groups, options, isWritten, list, help } = readArguments()
// Also the loops and servers that the mirror is compared with: what one allocator gains is not a gain of the mirror.
Object.assign(process.env, ALLOCATOR.env)
if (help) process.stdout.write(USAGE)
else if (list) for (const group of groups) process.stdout.write(`${sectionText(group.list(options))}\n\n`)
else await measureAll(groups, options, isWritten)
