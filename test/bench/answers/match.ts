import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { median } from '../report/figures.ts'
import { startDaemon } from '../world/daemon.ts'
import { timed } from '../world/processes.ts'
import { makeSbom } from './sbom.ts'

/** How long one SBOM took, milliseconds: a command, with its start, and a request to a daemon that answered some before. */
export interface Matched {
  readonly commandMs: number
  readonly requestMs: number
  readonly findings: number
}

const REPEATS = 5
/** Such an SBOM with what it needs of a shell: nobody reads the answer. */
const COMMAND = 'PATCHMIRROR_DATA_DIR="$1" "$2" dist/main.js match "$3" --json > "$1/answer.json"'

/** Judges an SBOM of so many components by all records of the stand-in. */
export async function matchSbom(upstream: string, components: number): Promise<Matched> {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-match-'))
  const daemon = await startDaemon(upstream, dir)
  try {
    await daemon.run('osv')
    await viewsMade(daemon.url)
    await daemon.idle()
    const body = makeSbom(components)
    const file = join(dir, 'sbom.json')
    writeFileSync(file, body)
    await post(daemon.url, body) // starts the thread, and reads what it needs once
    const asked: number[] = []
    let findings = 0
    for (let round = 0; round < REPEATS; round++) {
      const started = performance.now()
      findings = await post(daemon.url, body)
      asked.push(performance.now() - started)
    }
    const ran: number[] = []
    for (let round = 0; round < REPEATS; round++)
      ran.push((await timed('sh', ['-c', COMMAND, 'sh', dir, process.execPath, file])).ms)
    return { commandMs: median(ran), requestMs: median(asked), findings }
  } finally {
    await daemon.stop()
    rmSync(dir, { recursive: true, force: true })
  }
}

/** Waits until the views are made: before, an SBOM is answered with 503. */
async function viewsMade(url: string): Promise<void> {
  while (!(await fetch(`${url}/-/match`, { method: 'POST', body: makeSbom(1) })).ok);
}

async function post(url: string, body: string): Promise<number> {
  const answer = await fetch(`${url}/-/match`, { method: 'POST', body })
  if (!answer.ok) throw new Error(`POST /-/match: ${answer.status} ${await answer.text()}`)
  const { counts } = (await answer.json()) as { counts: { findings: number } }
  return counts.findings
}
