import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createKeyFiles, readSigningKey } from '../../src/bundle/keys.ts'
import { scratch, writeBundle } from './bundles.ts'

const has = (command: string, ...args: string[]): boolean =>
  spawnSync(command, args, { stdio: 'ignore' }).status === 0
const missing = [
  ['unzip', '-v'],
  ['openssl', 'version'],
  ['sha256sum', '--version'],
].flatMap(([command = '', option = '']) => (has(command, option) ? [] : [command]))

const page = readFileSync('docs/bundle-format.md', 'utf8')
const block = /<!-- a test runs this block -->\s+```sh\n([^`]+)```/.exec(page)?.[1] ?? ''
const keyId = /An id is made[^`]+```sh\n([^`]+)```/.exec(page)?.[1] ?? ''

const note = missing.length > 0 ? ` (skipped: there is no ${missing.join(', ')})` : ''

test.skipIf(missing.length > 0)(
  `the commands that docs/bundle-format.md gives verify a bundle, and find a changed one${note}`,
  async () => {
    const folder = scratch()
    const { id } = createKeyFiles(join(folder, 'bundle.key'))
    const bundle = join(folder, 'mirror.bundle.zip')
    await writeBundle(bundle, [readSigningKey(join(folder, 'bundle.key'))])
    const run = (name: string, script: string) => {
      const cwd = join(folder, name)
      mkdirSync(cwd)
      for (const file of ['mirror.bundle.zip', 'bundle.key.pub'])
        copyFileSync(join(folder, file), join(cwd, file))
      return spawnSync('sh', ['-c', script], { cwd, encoding: 'utf8' })
    }
    const good = run('good', block)
    expect({ ...good, stderr: '' }).toMatchObject({
      status: 0,
      stdout: 'Signature Verified Successfully\n',
    })
    expect(run('id', keyId).stdout.trim()).toBe(id)
    const changed = block.replace('for signature', 'echo >> osv/all.zip\nfor signature')
    expect(run('member', changed).status).not.toBe(0)
    const forged = block.replace('for signature', 'echo >> manifest.json\nfor signature')
    expect(run('manifest', forged).stdout).toContain('Signature Verification Failure')
  },
)
