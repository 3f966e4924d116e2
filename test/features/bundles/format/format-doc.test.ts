import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type SigningKey, createKeyFiles, readSigningKey } from '../../../../src/features/bundles/format/keys.ts'
import { scratch, writeBundle } from '../fixtures.ts'

const has = (command: string, ...args: string[]): boolean => spawnSync(command, args, { stdio: 'ignore' }).status === 0
const missing = [
  ['unzip', '-v'],
  ['openssl', 'version'],
  ['sha256sum', '--version'],
].flatMap(([command = '', option = '']) => (has(command, option) ? [] : [command]))

const page = readFileSync('docs/bundle-format.md', 'utf8')
const [block = '', keys = ''] = [...page.matchAll(/<!-- a test runs this block -->\s+```sh\n([^`]+)```/g)].map(
  ([, text]) => text,
)

/** Who signed, which key is held, and what is run. */
interface Attempt {
  signers: SigningKey[]
  held: 'bundle' | 'other'
  script: string
}

const note = missing.length > 0 ? ` (skipped: there is no ${missing.join(', ')})` : ''

test.skipIf(missing.length > 0)(
  `the commands that docs/bundle-format.md gives verify a bundle, and find a changed one${note}`,
  async () => {
    const folder = scratch()
    expect(spawnSync('sh', ['-ec', keys], { cwd: folder }).status).toBe(0)
    createKeyFiles(join(folder, 'other.key'))
    const key = readSigningKey(join(folder, 'bundle.key'))
    const other = readSigningKey(join(folder, 'other.key'))
    const run = async (name: string, { signers = [key], held = 'bundle', script = block }: Partial<Attempt> = {}) => {
      const cwd = join(folder, name)
      mkdirSync(cwd)
      await writeBundle(join(cwd, 'mirror.bundle.zip'), signers)
      copyFileSync(join(folder, `${held}.key.pub`), join(cwd, 'bundle.key.pub'))
      return spawnSync('sh', ['-c', script], { cwd, encoding: 'utf8' })
    }
    const sound = { status: 0, stdout: 'Signature Verified Successfully\n' }
    expect(await run('good')).toMatchObject(sound)
    expect(await run('both', { signers: [other, key] })).toMatchObject(sound)
    const bad = [
      await run('foreign', { held: 'other' }),
      await run('unsigned', { signers: [] }),
      await run('member', {
        script: block.replace('openssl pkeyutl', 'echo >> osv/all.zip && $&'),
      }),
      await run('manifest', {
        script: block.replace('openssl pkeyutl', 'echo >> manifest.json && $&'),
      }),
      await run('renamed', {
        held: 'other',
        script: block.replace('openssl pkeyutl', `mv signatures/${key.id}.sig signatures/$id.sig && $&`),
      }),
    ]
    expect(bad.map(({ status }) => status === 0)).toEqual(bad.map(() => false))
    expect(bad.at(-1)?.stdout).toContain('Signature Verification Failure')
  },
)
