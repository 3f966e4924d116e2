import { type SingleBar, MultiBar } from 'cli-progress'
import { type BundleProgress, RUN_PHASES, amountOf, describeRetry } from '../base/domain/progress.ts'
import type { RunProgress } from '../base/reports/runs.ts'
import { movesCursor } from '../base/terminal.ts'
import type { Progress } from '../sync/context.ts'

/** Shows how far runs are. `finish` ends the display before anything else is printed. */
interface ProgressDisplay<P = Progress> {
  show: (progress: P) => void
  finish: () => void
}

const BUNDLE_PHASES: Record<BundleProgress['phase'], string> = {
  summary: 'comparing',
  write: 'writing',
  check: 'checking what was written',
  upload: 'uploading',
  download: 'downloading',
  verify: 'verifying',
  stage: 'storing documents',
  rows: 'rows',
  records: 'storing records',
  archive: 'making the archive',
  prove: 'proving',
}

/** Bars on a terminal, plain lines elsewhere, nothing when `quiet`. Always on standard error. */
export function createProgress(quiet: boolean): ProgressDisplay {
  return createDisplay(quiet, ({ source, phase }) => `${source}: ${RUN_PHASES[phase]}`)
}

/** The same for an export or an import of a bundle. */
export function createBundleProgress(quiet: boolean): ProgressDisplay<BundleProgress> {
  return createDisplay(quiet, ({ phase }: BundleProgress) => `bundle: ${BUNDLE_PHASES[phase]}`, isQuick)
}

/** What is over before a line about it is read. */
function isQuick({ unit, total }: Countable): boolean {
  return (total ?? 0) < (unit === 'bytes' ? 5_000_000 : 5_000)
}

type Countable = Pick<Progress, 'done' | 'total'> & Pick<RunProgress, 'retry'> & { unit: string }

/** Shortest time between two lines about repeated requests, milliseconds. */
const RETRIES_MS = 10_000

/** Returns what calls `write` with a line about a repeated request, seldom enough to be read. */
function createRetryLines(write: (line: string) => void): (progress: Countable) => void {
  let writtenAt = -RETRIES_MS
  return ({ retry }) => {
    const at = performance.now()
    if (retry === undefined || at - writtenAt < RETRIES_MS) return
    writtenAt = at
    write(`${describeRetry(retry)}\n`)
  }
}

function createDisplay<P extends Countable>(
  quiet: boolean,
  label: (progress: P) => string,
  isTrifle: (progress: P) => boolean = () => false,
): ProgressDisplay<P> {
  if (quiet) return { show: () => undefined, finish: () => undefined }
  return movesCursor(process.stderr) ? createBars(label) : createLines(label, isTrifle)
}

function createBars<P extends Countable>(label: (progress: P) => string): ProgressDisplay<P> {
  const multi = new MultiBar({
    stream: process.stderr,
    hideCursor: true,
    clearOnComplete: false,
    autopadding: true,
    format: '{bar} {percentage}%  {label}  {amount}',
    barCompleteChar: '█',
    barIncompleteChar: '░',
  })
  const bars = new Map<string, SingleBar>()
  const showRetry = createRetryLines((line) => multi.log(line))
  return {
    show(progress) {
      showRetry(progress)
      const { done, total } = progress
      if (total === null || total === 0) return
      const name = label(progress).padEnd(34)
      const bar = bars.get(name) ?? multi.create(total, 0, { label: name, amount: '' })
      bars.set(name, bar)
      bar.setTotal(total)
      bar.update(done, { label: name, amount: amountOf(progress) })
    },
    finish: () => multi.stop(),
  }
}

/** A line when a phase begins, at each further quarter and at its end: readable in a log. */
function createLines<P extends Countable>(
  label: (progress: P) => string,
  isTrifle: (progress: P) => boolean,
): ProgressDisplay<P> {
  const quarters = new Map<string, number>()
  const showRetry = createRetryLines((line) => process.stderr.write(line))
  return {
    show(progress) {
      showRetry(progress)
      const { done, total } = progress
      if (total === null || total === 0 || isTrifle(progress)) return
      const name = label(progress)
      const quarter = Math.floor((4 * done) / total)
      if (quarters.get(name) === quarter) return
      quarters.set(name, quarter)
      process.stderr.write(`${name}: ${amountOf(progress)}\n`)
    },
    finish: () => quarters.clear(),
  }
}
