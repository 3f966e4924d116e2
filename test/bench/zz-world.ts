import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { mkdirSync } from 'node:fs'
import { createKeyFiles } from '../../src/features/bundles/format/keys.ts'
import { startDaemon } from './world/daemon.ts'
import { ROOT, startSandbox, timed } from './world/processes.ts'
const dir = '/tmp/thinworld'
mkdirSync(dir, { recursive: true })
const sandbox = await startSandbox(100_000)
async function sync(d: string) {
  const daemon = await startDaemon(sandbox.url, d)
  await daemon.run('feeds'); await daemon.run('osv'); await daemon.stop()
}
await sync(join(dir, 'records'))
const { line } = createKeyFiles(join(dir, 'key'))
process.env['PATCHMIRROR_BUNDLE_SIGNING_KEYS'] = join(dir, 'key')
process.env['PATCHMIRROR_BUNDLE_TRUSTED_KEYS'] = line
const command = async (d: string, ...args: string[]) => { process.env['PATCHMIRROR_DATA_DIR'] = join(dir, d); const t = await timed(process.execPath, [`${ROOT}test/bench/bundles/child.ts`, ...args]); console.log(args.join(' '), t.ms); return /^ {2}"sequence": (\d+)/m.exec(t.out)?.[1] ?? '' }
const s1 = await command('records', 'export', join(dir, 'full.zip'))
await command('target', 'import', join(dir, 'full.zip'))
await sandbox.command('change', 100)
await sync(join(dir, 'records'))
execFileSync('cp', ['-a', join(dir, 'records'), join(dir, 'records-before')])
execFileSync('cp', ['-a', join(dir, 'target'), join(dir, 'target-before')])
await command('records', 'export', join(dir, 'thin.zip'), s1, 'thin')
await command('target', 'import', join(dir, 'thin.zip'))
console.log('since', s1, line)
await sandbox.stop()
