import { expect, test } from 'vitest'
import { loadConfig } from '../../../src/config/load.ts'
import { warnOfPlainKeys } from '../../../src/config/rules/plain-keys.ts'

test.each([
  [{ LISTEN: '127.0.0.1:8080' }, false],
  [{ LISTEN: '127.8.0.1:8080' }, false],
  [{ LISTEN: 'localhost:8080' }, false],
  [{ LISTEN: '[::1]:8080' }, false],
  [{ LISTEN: '0.0.0.0:8080' }, true],
  [{ LISTEN: '[::]:8080' }, true],
  [{ LISTEN: '10.1.2.3:8080' }, true],
  [{ LISTEN: '0.0.0.0:8080', PUBLIC_URL: 'http://mirror.example' }, true],
  [{ LISTEN: '0.0.0.0:8080', PUBLIC_URL: 'https://mirror.example' }, false],
  [{ LISTEN: 'unix:/run/patchmirror/s' }, false],
])('a mirror with %j is warned of keys over plain http: %s', (server, warned) => {
  const named = Object.entries(server).map(([name, value]) => [`PATCHMIRROR_SERVER_${name}`, value])
  const env = Object.fromEntries(named) as Record<string, string>
  const { config } = loadConfig({ env, cwd: '/' })
  expect(warnOfPlainKeys(config) !== null).toBe(warned)
})
