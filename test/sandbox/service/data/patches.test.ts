import { beforeAll, describe, expect } from 'vitest'
import type { Sandbox } from '../../server.ts'
import { TICKET_ECOSYSTEMS, SEVERITIES, TICKET_STATUSES } from './tickets.ts'
import { sandboxes } from '../../fixtures.ts'
import { type Json, asAdmin, walk } from '../asking.ts'
import { longTest, test } from '../../../support/tables.ts'

const open = sandboxes()
let sandbox: Sandbox
let all: Json[]
beforeAll(async () => {
  sandbox = await open({ service: { tickets: 400 } })
  all = await find('')
})

const find = async (query: string): Promise<Json[]> => {
  const { value } = await asAdmin(sandbox, `/v1/patches?limit=1000${query}`)
  return value['tickets'] as Json[]
}

function compare(one: string, other: string): number {
  if (one < other) return -1
  return one > other ? 1 : 0
}

describe('a filter of /patches', () => {
  test('by ecosystem keeps exactly the tickets of that one', async () => {
    for (const ecosystem of TICKET_ECOSYSTEMS) {
      const wanted = all.filter((ticket) => ticket['ecosystem'] === ecosystem)
      expect(await find(`&ecosystem=${ecosystem}`)).toEqual(wanted)
      expect(wanted.length).toBeGreaterThan(0)
    }
  })

  test('by severities or ticket statuses keeps those of any one in the list', async () => {
    for (const [name, field, words] of [
      ['severities', 'severity', SEVERITIES],
      ['ticket_statuses', 'ticket_status', TICKET_STATUSES],
    ] as const) {
      const [one, two] = words
      const wanted = all.filter((ticket) => [one, two].some((word) => word === ticket[field]))
      expect(await find(`&${name}=${one},${two}`)).toEqual(wanted)
      expect(await find(`&${name}=${words.join(',')}`)).toEqual(all)
    }
  })

  test('by CVE or source package keeps those of that very name', async () => {
    const { cve_id, package_src_name } = all[5] as { cve_id: string; package_src_name: string }
    expect(await find(`&cve_id=${cve_id}`)).toEqual(all.filter((one) => one['cve_id'] === cve_id))
    const named = all.filter((one) => one['package_src_name'] === package_src_name)
    expect(await find(`&package_src_name=${encodeURIComponent(package_src_name)}`)).toEqual(named)
    expect(await find('&cve_id=CVE-0000-0000')).toEqual([])
  })

  test('narrows the result of another filter, and an empty one has no effect', async () => {
    const wanted = all.filter(
      (one) =>
        one['ecosystem'] === 'debian' &&
        one['severity'] === 'critical' &&
        one['ticket_status'] === 'open',
    )
    const query = '&ecosystem=debian&severities=critical&ticket_statuses=open&cve_id='
    expect(await find(query)).toEqual(wanted)
  })

  test('with an unknown value is a 400', async () => {
    const wrong = [
      'ecosystem=gentoo',
      'severities=critical,huge',
      'ticket_statuses=OPEN',
      'ecosystem=npm,pypi',
    ]
    for (const query of wrong) {
      const { status, value } = await asAdmin(sandbox, `/v1/patches?${query}`)
      expect([query, status, Object.keys(value)]).toEqual([query, 400, ['message']])
    }
  })
})

describe('the order of /patches', () => {
  longTest('sorts by a field in both directions, across pages', async () => {
    for (const field of ['created_at', 'cve_id', 'severity', 'patch_found_at']) {
      const text = (one: Json) => (one[field] ?? '') as string
      const rising = all.toSorted((a, b) => compare(text(a), text(b)))
      expect(await find(`&order=${field}:asc`)).toEqual(rising)
      const falling = all.toSorted((a, b) => compare(text(b), text(a)))
      const { items, pages } = await walk(
        sandbox,
        '/v1/patches',
        90,
        'tickets',
        `&order=${field}:desc`,
      )
      expect([pages, items]).toEqual([5, falling])
    }
  })

  test('without a known field and direction is a 400', async () => {
    for (const order of ['created_at', 'created_at:up', 'colour:asc', ':asc', 'patch_found:asc']) {
      expect((await asAdmin(sandbox, `/v1/patches?order=${order}`)).status, order).toBe(400)
    }
  })
})

test('some tickets have texts and numbers that only their bytes preserve', async () => {
  const { bytes } = await asAdmin(sandbox, '/v1/patches?limit=1000')
  expect(bytes.toString()).toMatch(/"upstream_reference":90071992547409\d{2}/)
  expect(bytes.toString()).toContain('漏洞を確認中 🛡')
})

test('two thousand tickets are served a page at a time', async () => {
  const large = await open({ service: { tickets: 2_000 } })
  const { value } = await asAdmin(large, '/v1/patches?ecosystem=npm&order=updated_at:desc&limit=5')
  expect(value['tickets']).toHaveLength(5)
  const { total_count: total } = value['cursor'] as { total_count: number }
  expect(total).toBeGreaterThan(100)
})
