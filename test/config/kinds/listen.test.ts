import { expect, test } from 'vitest'
import { load, loadYaml, refusal } from '../loading.ts'

const at = (listen: string) => load({ env: { PATCHMIRROR_SERVER_LISTEN: listen } }).config.server

test.each([
  ['0.0.0.0:8080', { host: '0.0.0.0', port: 8080, socket: null }],
  ['mirror-1.example.com:0', { host: 'mirror-1.example.com', port: 0, socket: null }],
  ['[::]:9000', { host: '::', port: 9000, socket: null }],
  ['unix:/run/pm.sock', { socket: '/run/pm.sock', socketMode: '0660' }],
  ['unix:/run/pm.sock?mode=0666', { socket: '/run/pm.sock', socketMode: '0666' }],
  ['unix:pm.sock?mode=660', { socket: '/srv/mirror/pm.sock', socketMode: '0660' }],
])('%s is an address to listen on', (listen, parts) => {
  expect(at(listen)).toMatchObject(parts)
})

test.each([
  ['8080', 'is not a host or an address, a colon and a port'],
  [':8080', 'is not a host or an address, a colon and a port'],
  ['127.0.0.1', 'is not a host or an address, a colon and a port'],
  ['::1:8080', 'is not a host or an address, a colon and a port'],
  ['[localhost]:8080', 'is not a host or an address, a colon and a port'],
  ['http://localhost:8080', 'is not a host or an address, a colon and a port'],
  ['localhost:65536', 'has a port above 65535'],
  ['unix:', 'has no path of a socket'],
  ['unix:/run/pm.sock?mode=0460', 'has a mode that is not in octal digits that start with 6 or 7'],
  [`unix:/${'x'.repeat(103)}`, 'has a path longer than 103 bytes'],
])('%s is refused, with an example that is right', (listen, fault) => {
  const said = refusal(() => at(listen))
  expect(said).toContain(`server.listen (env PATCHMIRROR_SERVER_LISTEN): "${listen}`.slice(0, 100))
  expect(said).toContain(fault)
  expect(said).toContain('for example 127.0.0.1:8080')
})

test('a listener of webhooks has no socket', () => {
  const { webhooks } = loadYaml('webhooks: { listen: 0.0.0.0:8443 }').config
  expect(webhooks).toMatchObject({ host: '0.0.0.0', port: 8443 })
  expect(refusal(() => loadYaml('webhooks: { listen: unix:/run/x }'))).toContain('webhooks.listen')
})
