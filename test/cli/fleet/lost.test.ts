import { createPublicKey } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { type CheckResult, runChecks } from '../../../src/features/doctor/check.ts'
import { doctorWorld } from '../../../src/features/doctor/cli/world.ts'
import { fleetStore } from '../../../src/features/doctor/fleet.ts'
import { fleetCheckCommand } from '../../../src/features/fleet/cli/check.ts'
import { fleetStatusCommand } from '../../../src/features/fleet/cli/status.ts'
import { generationKey } from '../../../src/features/fleet/generations/format/object-names.ts'
import { recordPublished } from '../../../src/features/fleet/generations/position.ts'
import { folder, signer } from '../../features/bundles/air-gap.ts'
import { spoken } from '../../features/bundles/error-messages.ts'
import { createPair, namedBy } from '../../features/fleet/generations/pair.ts'
import { loadQuick } from '../../support/limits.ts'

/** A data folder that followed the second of four generations, and their store, a folder. */
async function createScene() {
  const pair = createPair()
  for (let i = 0; i < 4; i++) await pair.publish()
  const home = folder()
  const store = join(home, 'store')
  mkdirSync(store)
  for (const key of pair.bucket.keys()) {
    mkdirSync(dirname(join(store, key)), { recursive: true })
    writeFileSync(join(store, key), pair.bucket.read(key) ?? '')
  }
  const dir = join(home, 'data')
  recordPublished(dir, pair.bucket.read(generationKey(2)) ?? Buffer.alloc(0))
  const trusted = join(home, 'key.pub')
  const key = createPublicKey(readFileSync(signer().path))
  writeFileSync(trusted, key.export({ type: 'spki', format: 'pem' }))
  const env = {
    PATCHMIRROR_DATA_DIR: dir,
    PATCHMIRROR_FLEET_URL: pathToFileURL(store).href,
    PATCHMIRROR_FLEET_ROLE: 'reader',
    PATCHMIRROR_BUNDLE_TRUSTED_KEYS: trusted,
  }
  const { config } = loadQuick({ env, cwd: home })
  const check = { name: 'fleet-store', title: '', needs: [], run: () => fleetStore({ world: doctorWorld({}), config }) }
  const doctor = (): Promise<CheckResult[]> => runChecks([check], 100_000)
  return { env, store, names: namedBy(pair, 4), doctor }
}

type Scene = Awaited<ReturnType<typeof createScene>>
const lose = ({ store }: Scene, key: string): void => rmSync(join(store, key), { recursive: true })

test.each<[string, (scene: Scene) => unknown, RegExp]>([
  [
    'everything',
    (scene) => ['gen', 'bundles', 'head.json'].map((key) => lose(scene, key)),
    /not have the generation 2 that/,
  ],
  ['what was followed', (scene) => lose(scene, generationKey(2)), /does not have the generation 2 that/],
  ['the next generation', (scene) => lose(scene, generationKey(3)), /generation 3 is missing on .+, and 4 exists/],
  ['a full bundle', (scene) => lose(scene, scene.names[0] ?? ''), /zip is missing on .+ and a generation names it/],
  ['a delta', (scene) => lose(scene, scene.names[1] ?? ''), /zip is missing on .+ and a generation names it/],
])('fleet status, fleet check and doctor say that the store lost %s', async (_, spoil, words) => {
  const scene = await createScene()
  const commands = [() => fleetStatusCommand({}), () => fleetCheckCommand({})]
  for (const command of commands) expect(await spoken(scene.env, command)).toMatchObject({ code: 0 })
  expect(await scene.doctor()).toMatchObject([{ state: 'warn' }]) // there is no lease
  spoil(scene)
  for (const command of commands) {
    const { code, said } = await spoken(scene.env, command)
    expect([code, said]).toEqual([1, expect.stringMatching(words)])
    expect(said).not.toMatch('yet\n')
  }
  expect(await scene.doctor()).toMatchObject([{ state: 'fail', found: expect.stringMatching(words) as string }])
  const { said } = await spoken(scene.env, () => fleetStatusCommand({ json: true }))
  expect(JSON.parse(said)).toMatchObject({ doubts: [expect.stringMatching(words)] })
})
