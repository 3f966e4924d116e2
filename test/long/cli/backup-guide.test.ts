import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { MAIN } from '../../support/command.ts'
import { openWorld } from '../../support/daemons.ts'

const page = readFileSync('docs/guides/backup.md', 'utf8')
const [, drill = ''] = /<!-- a test runs this block -->\s+```sh\n([^`]+)```/.exec(page) ?? []
const hasCurl = spawnSync('curl', ['--version'], { stdio: 'ignore' }).status === 0
const note = hasCurl ? '' : ' (skipped: there is no curl)'

test.skipIf(!hasCurl)(
  `the drill of docs/guides/backup.md ends with a mirror that is ready, and with the digest of the backup${note}`,
  async () => {
    const world = await openWorld({ records: 40, service: false })
    onTestFinished(() => world.close())
    const first = await world.host()
    await first.said(/osv sync: complete/)
    await first.said(/feeds sync: complete/)
    const bin = join(world.dir, 'bin')
    const temporary = join(world.dir, 'tmp')
    for (const dir of [bin, temporary]) mkdirSync(dir)
    const command = `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@"\n`
    writeFileSync(join(bin, 'patchmirror'), command, { mode: 0o755 })
    const path = [bin, process.env['PATH']].join(delimiter)
    const env = { ...world.env, PATH: path, TMPDIR: temporary }
    const shell = spawn('sh', ['-ec', drill], { env, cwd: world.dir })
    let out = ''
    let err = ''
    shell.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
    shell.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
    const [code] = (await once(shell, 'close')) as [number]
    expect([code, err]).toEqual([0, expect.stringContaining('"msg":"stopped"')])
    expect(out).toMatch(/"ready":true/)
    const whole = /state digest ([0-9a-f]{64})/.exec(out)?.[1] ?? ''
    expect(out.split(whole)).toHaveLength(4) // of the backup, of the restore, and of the mirror that served
    expect(readdirSync(temporary)).toEqual([])
  },
)
