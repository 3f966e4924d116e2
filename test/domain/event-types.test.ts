import { describe, expect, test } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import {
  AWAITED_LISTS,
  EVENT_TYPES,
  REFRESHED_LISTS,
  REFRESHED_SOURCES,
  imageCreatedType,
  namedBy,
  withVendor,
} from '../../src/domain/event-types.ts'
import { EVENT_TYPE } from '../../src/sandbox/service/routes/webhooks.ts'
import { createTypeFilter } from '../../src/webhooks/receive/event.ts'

describe('the table of event types', () => {
  const { config } = loadConfig({ env: {}, cwd: '/' })
  const { vendor } = config.upstream

  test('the default of webhooks.types accepts every type of the table, and no other of the service', () => {
    const isWanted = createTypeFilter(config.webhooks.types, vendor)
    for (const { type } of Object.values(EVENT_TYPES))
      expect(isWanted(withVendor(type, vendor)), type).toBe(true)
    expect(isWanted(withVendor('io.{vendor}.cr.image.deleted.v1', vendor))).toBe(false)
  })

  test("the contract's type is the one that the stand-in service sends", () => {
    expect(imageCreatedType('service')).toBe(EVENT_TYPE)
  })

  test('a refresh checks what some event can change, and waits for the list of tags', () => {
    expect(REFRESHED_SOURCES).toEqual(['feeds', 'osv', 'catalog'])
    expect(REFRESHED_LISTS).toEqual(['images', 'tags'])
    expect(AWAITED_LISTS).toEqual(['/v1/tags'])
  })

  test('an event of an unknown type may name an image', () => {
    expect(namedBy(EVENT_TYPES.snapshotPublished.type)).toBe('snapshot')
    expect(namedBy('com.example.other')).toBe('image')
    expect(namedBy(undefined)).toBe('image')
  })
})
