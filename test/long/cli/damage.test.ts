import { cpSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, afterAll, expect, test } from 'vitest'
import { verbsOf } from '../../../src/cli/verbs.ts'
import { DAMAGES, dropTable, settle } from '../../support/damage.ts'
import { type World, openWorld } from '../../support/daemons.ts'
import { commandHost } from '../../support/hosted.ts'
import { FEATURES } from '../../../src/features.ts'

const VERBS = verbsOf(FEATURES)

const run = commandHost()
const SECRET = 'whsec_e3yNhqksL/3XRORmZzz0sZUzqF/kAdxd'

/** Arguments of the commands that take some, a text for each call; null: it talks to the service alone, or does not end by itself. */
const ARGUMENTS: Partial<Record<string, string | readonly string[] | null>> = {
  config: ['', '--check settings.yaml'],
  backup: 'backup.zip',
  restore: 'none.zip',
  'bundle keygen': 'key',
  'bundle export': 'bundle.zip',
  'bundle inspect': ['', 'none.zip', '--new-identity --yes'],
  'bundle import': 'none.zip',
  'bundle need': 'need.json',
  search: 'x',
  show: 'x',
  match: 'sbom.json',
  'export-db': 'osv-scanner out',
  runs: '1',
  approve: '1',
  reject: '1',
  doctor: ['', '--data', '--save support.zip'],
  status: ['', '--live', '--ready', '--digest'],
  'keys create': '--name z',
  'keys revoke': '1',
  relay: ['', '--enable 1', '--secret'],
  'webhooks inbox': ['', '1', '--state dead'],
  'webhooks resolve': ['--replay 1', '--dismiss 1'],
  serve: null,
  completion: null,
  bundle: null,
  list: null,
  fleet: null,
  keys: null,
}

/** The commands that read a data folder, each with arguments that it takes. */
const COMMANDS = VERBS.map(({ path }) => path)
  .filter((path) => ARGUMENTS[path] !== null && !/^(fleet|whoami|users|api-keys|subscriptions)/.test(path))
  .filter((path) => !['webhooks', 'webhooks check', 'webhooks rotate'].includes(path))
  .filter((path) => !/^webhooks (register|list|test|delete)$/.test(path))
  .flatMap((path) => [ARGUMENTS[path] ?? ''].flat().map((text) => `${path} ${text}`.trim().split(' ')))

let world: World
let sound: string
beforeAll(async () => {
  world = await openWorld({ records: 30, service: false }, undefined, run)
  world.env['PATCHMIRROR_WEBHOOKS_SECRETS'] = SECRET
  const daemon = await world.host()
  await daemon.said(/osv sync: complete/)
  await daemon.said(/feeds sync: complete/)
  await daemon.said(/the bucket is made/)
  await daemon.close()
  for (const name of ['mirror.db', 'webhooks.db']) settle(join(world.data, name))
  sound = join(world.dir, 'sound')
  cpSync(world.data, sound, { recursive: true })
  writeFileSync(join(world.dir, 'settings.yaml'), '{}\n')
  writeFileSync(join(world.dir, 'sbom.json'), '{"bomFormat":"CycloneDX","specVersion":"1.5","components":[]}')
})
afterAll(() => world.close())

const TABLES = { 'mirror.db': 'snapshot', 'webhooks.db': 'inbox', 'views.db': 'member' } as const

function pathOf(name: keyof typeof TABLES): string {
  if (name !== 'views.db') return join(world.data, name)
  const folder = join(world.data, 'derived', 'views')
  const found = readdirSync(folder, { recursive: true })
    .map(String)
    .find((one) => one.endsWith(name))
  return join(folder, found ?? name)
}

const FORMS = ['pages', 'header', 'schema', 'cut', 'unreadable', 'no table', 'a folder'] as const

function damage(name: keyof typeof TABLES, form: (typeof FORMS)[number]): void {
  rmSync(world.data, { recursive: true, force: true })
  cpSync(sound, world.data, { recursive: true })
  const path = pathOf(name)
  if (form === 'no table') dropTable(path, TABLES[name])
  else if (form === 'a folder') {
    rmSync(path)
    mkdirSync(path)
  } else DAMAGES[form](path)
}

test.each(Object.keys(TABLES).flatMap((name) => FORMS.map((form) => [name, form] as const)))(
  'no command ends in a stack or in words of SQLite alone where %s is damaged (%s)',
  async (name, form) => {
    const bad: string[] = []
    for (const args of COMMANDS) {
      damage(name as keyof typeof TABLES, form)
      for (const left of ['support.zip', 'backup.zip', 'bundle.zip', 'need.json', 'out', 'key', 'key.pub'])
        rmSync(join(world.dir, left), { recursive: true, force: true })
      const { code, out, err } = await world.patchmirror(...args)
      const isStack = /^\s+at .*:\d+:\d+/m.test(out + err)
      const isBare = /^patchmirror: (database disk|file is not|no such|disk I\/O|unable to open)/m.test(err)
      if (isStack || isBare || code === null) bad.push(`${args.join(' ')} [${code}]: ${err.slice(0, 200)}`)
    }
    expect(bad).toEqual([])
  },
  600_000,
)
