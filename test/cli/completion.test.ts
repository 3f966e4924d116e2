import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { verbsOf } from '../../src/cli/verbs.ts'
import { VERSION } from '../../src/base/version.ts'
import { scratch } from '../config/loading.ts'
import { commandHost } from '../support/hosted.ts'
import { findTool, runTool } from '../support/tools.ts'
import { FEATURES } from '../../src/features.ts'

const VERBS = verbsOf(FEATURES)

const run = commandHost()
const BASH = findTool('bash')

test.skipIf(BASH === null)(
  'the completion of bash completes commands, subcommands and options (needs bash)',
  async () => {
    const dir = scratch()
    const file = join(dir, 'completion')
    writeFileSync(file, (await run(['completion', 'bash'], {}, dir)).out)
    const ask = async (...words: string[]): Promise<string[]> => {
      const line = ['patchmirror', ...words].map((word) => `'${word}'`).join(' ')
      const script = `source ${file}; COMP_WORDS=(${line}); COMP_CWORD=${words.length}; _patchmirror; echo "\${COMPREPLY[@]}"`
      return (await runTool(BASH ?? '', ['-c', script])).out.trim().split(' ')
    }
    expect(await ask('webh')).toEqual(['webhooks'])
    expect(await ask('webhooks', 'res')).toEqual(['resolve'])
    expect(await ask('webhooks', 'resolve', '--re')).toEqual(['--replay'])
    expect(await ask('sync', 'osv', '--dry')).toEqual(['--dry-run'])
    expect(await ask('config', '--ch')).toEqual(['--check'])
    expect(await ask('doctor', '--sa')).toEqual(['--save'])
    expect(await ask('list', 'pat')).toEqual(['patches'])
    expect(await ask('list', 'patches', '--sev')).toEqual(['--severity'])
  },
)

test('the completion script of each shell has every command, and an unknown shell is refused', async () => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { out, code } = await run(['completion', shell], {}, '/')
    expect([shell, code]).toEqual([shell, 0])
    const words = VERBS.map(({ path }) => path.split(' ').at(-1) ?? '')
    expect([shell, words.filter((word) => !out.includes(word))]).toEqual([shell, []])
  }
  expect(await run(['completion', 'tcsh'], {}, '/')).toMatchObject({ code: 2 })
})

test('--version prints the version, and with --json the formats of database and bundles', async () => {
  expect(await run(['--version'], {}, '/')).toMatchObject({ code: 0, out: `${VERSION}\n` })
  for (const args of [
    ['--version', '--json'],
    ['--json', '-V'],
  ])
    expect(JSON.parse((await run(args, {}, '/')).out)).toMatchObject({
      version: VERSION,
      bundleFormat: 1,
      schema: expect.any(Number) as number,
    })
})
