-- Lanes that are being served, or were by a sender that died: one that had nothing left to send would be called
-- SENDING until its next message.
SELECT id AS lane_id FROM delivery_lane WHERE state = 'SENDING'
