import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { loadConfig } from '../../../src/config/load.ts'
import { navigationOf } from '../../../src/features/pages/navigation.ts'
import { PAGES } from '../../../src/features/pages/pages.ts'

const ui = (path: string): string => `/-/ui/${path}`

function tabsOf(path: string, env: Record<string, string> = {}): string[] {
  const dir = env['PATCHMIRROR_DATA_DIR'] ?? '/nonexistent'
  const { config } = loadConfig({ env: { PATCHMIRROR_DATA_DIR: dir, ...env }, cwd: tmpdir() })
  const page = PAGES.find((one) => one.path === path) ?? null
  return navigationOf(page, config, ui, '/-/docs').tabs.map(({ label, current }) => (current ? `[${label}]` : label))
}

test('the navigation has four entries, and each page is in one of them', () => {
  const { config } = loadConfig({ env: {}, cwd: tmpdir() })
  for (const page of PAGES) {
    const { entries, entry } = navigationOf(page, config, ui, '/-/docs')
    expect(entries.map(({ label }) => label)).toEqual(['Status', 'Vulnerabilities', 'Images', 'API'])
    expect(entries.filter(({ current }) => current).map(({ label }) => label)).toEqual([entry])
  }
  const { entries } = navigationOf('contract', config, ui, '/-/docs')
  expect(entries.filter(({ current }) => current)).toEqual([{ label: 'API', href: '/-/docs', current: true }])
})

test('the tabs of Status that the settings leave out are hidden, except on their own page', () => {
  expect(tabsOf('run')).toEqual(['Overview', '[Runs]'])
  expect(tabsOf('fleet')).toEqual(['Overview', 'Runs', '[Fleet]'])
  const on = { PATCHMIRROR_RELAY_TARGETS: 'https://chat.example/hook' }
  expect(tabsOf('', on)).toEqual(['[Overview]', 'Runs', 'Relay'])
})

test('the tab of webhooks is shown where a file has the secrets', () => {
  const dir = mkdtempSync(join(tmpdir(), 'patchmirror-tabs-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  writeFileSync(join(dir, 'webhook-secrets.json'), '[]')
  expect(tabsOf('', { PATCHMIRROR_DATA_DIR: dir })).toContain('Webhooks')
})

test('a page that has no tab of its own marks the one that it belongs to', () => {
  for (const path of ['cve', 'record', 'search'])
    expect(tabsOf(path)).toEqual(['[Search]', 'Ecosystems', 'Patches', 'Changes'])
  expect(tabsOf('package')).toContain('[Ecosystems]')
  expect(tabsOf('tag')).toEqual([])
})
