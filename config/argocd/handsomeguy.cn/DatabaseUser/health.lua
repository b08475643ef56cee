-- SPDX-License-Identifier: Apache-2.0
-- The health of an object of steward for Argo CD, from the conditions that all kinds have (kstatus).
local health = {status = "Progressing", message = "steward has not seen this object yet"}

local annotations = obj.metadata.annotations or {}
if annotations["steward.dev/paused"] == "true" then
  return {status = "Suspended", message = "paused by the annotation steward.dev/paused"}
end
if obj.metadata.deletionTimestamp ~= nil then
  health.message = "is being deleted"
end
if type(obj.status) ~= "table" or type(obj.status.conditions) ~= "table" then
  return health
end

local found = {}
for _, condition in ipairs(obj.status.conditions) do
  found[condition.type] = condition
end

local function is_true(name)
  return found[name] ~= nil and found[name].status == "True"
end

local function message_of(condition)
  if condition == nil then
    return ""
  end
  if condition.message == nil or condition.message == "" then
    return condition.reason or ""
  end
  return condition.message
end

-- A status of an earlier generation says nothing about this one.
local seen = obj.status.observedGeneration
if obj.metadata.generation ~= nil and seen ~= nil and seen ~= obj.metadata.generation then
  health.message = "steward has not seen the last change yet"
  return health
end
if obj.metadata.deletionTimestamp ~= nil and not is_true("Stalled") then
  return health
end
if is_true("Stalled") then
  -- Stalled says what a person has to do; without a text of its own, Ready does.
  local text = message_of(found["Stalled"])
  return {status = "Degraded", message = text ~= "" and text or message_of(found["Ready"])}
end
if is_true("Ready") then
  return {status = "Healthy", message = message_of(found["Ready"])}
end
health.message = message_of(found["Ready"])
if not is_true("Reconciling") and found["Ready"] ~= nil and found["Ready"].status == "False" then
  health.status = "Degraded"
end
return health
